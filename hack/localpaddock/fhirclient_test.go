package localpaddock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/examples"
)

// clientFiles are what the client needs beside its packages, by the folder they
// come from.
var clientFiles = map[string][]string{
	"fhirclient": {"package.json", "package-lock.json", ".npmrc", "exercise.mjs"},
	"r4check":    {"check.mjs"},
}

var _ = Describe("An ordinary FHIR client", Ordered, func() {
	// folder is below bin, where the packages stay.
	var folder string

	BeforeAll(func(ctx context.Context) {
		var err error
		folder, err = filepath.Abs(filepath.Join("..", "..", "bin", "fhirclient"))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		installed, _ := os.ReadFile(filepath.Join(folder, "package-lock.json"))
		for source, names := range clientFiles {
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join("..", source, name))
				Expect(err).NotTo(HaveOccurred())
				Expect(os.WriteFile(filepath.Join(folder, name), text, 0o644)).To(Succeed())
			}
		}
		wanted, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
		Expect(err).NotTo(HaveOccurred())
		if _, err := os.Stat(filepath.Join(folder, "node_modules")); err == nil && bytes.Equal(installed, wanted) {
			return
		}
		install := exec.CommandContext(ctx, "npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = folder
		output, err := install.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "npm ci: %s", output)
	})

	// node runs a program of the folder on some input.
	node := func(ctx context.Context, program, input string, env ...string) string {
		GinkgoHelper()
		command := exec.CommandContext(ctx, "node", filepath.Join(folder, program))
		command.Env = append(os.Environ(), env...)
		command.Stdin = strings.NewReader(input)
		var complaints bytes.Buffer
		command.Stderr = &complaints
		output, err := command.Output()
		Expect(err).NotTo(HaveOccurred(), "%s%s", output, complaints.String())
		return string(output)
	}

	for _, site := range []struct {
		name, atomic string
		steps        int
	}{{"demo", "", 10}, {"demo-postgres", "yes", 11}} {
		It("finds everything as FHIR has it at the site "+site.name, func(ctx SpecContext) {
			base := paddock.PublicURL() + "/site/" + site.name + "/fhir"
			output := node(ctx, "exercise.mjs", "", "FHIR_BASE="+base, "FHIR_TOKEN="+demoToken(base+"/"), "FHIR_ATOMIC="+site.atomic)
			Expect(strings.Count(output, "ok: ")).To(Equal(site.steps), output)
		})
	}

	It("may trust the CapabilityStatement: another validator finds it valid", func(ctx SpecContext) {
		statement := send(request{method: "GET", url: balanced + "/site/demo/fhir/metadata", token: "none"})
		Expect(statement.status).To(Equal(200))
		judge := func(resource []byte) string {
			GinkgoHelper()
			definitions := filepath.Join(GinkgoT().TempDir(), "definitions.json")
			Expect(os.WriteFile(definitions, structureDefinitions(ctx), 0o600)).To(Succeed())
			line, err := json.Marshal(string(resource))
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(node(ctx, "check.mjs", definitions+"\n"+string(line)+"\n"))
		}
		Expect(judge(statement.body)).To(Equal("[]"))
		By("which does find what is wrong with one")
		wrong := bytes.Replace(statement.body, []byte(`"kind":"instance"`), []byte(`"kind":["instance"]`), 1)
		Expect(judge(wrong)).NotTo(Equal("[]"))
	})
})

// structureDefinitions are HL7's of all types, as one array.
func structureDefinitions(ctx context.Context) []byte {
	GinkgoHelper()
	path, err := examples.Fetch(ctx, filepath.Join("..", "..", "bin"))
	Expect(err).NotTo(HaveOccurred())
	var all []json.RawMessage
	Expect(examples.Walk(path, func(name string, text []byte) error {
		var head struct{ Kind, Derivation string }
		if !strings.HasPrefix(name, "StructureDefinition-") {
			return nil
		}
		err := json.Unmarshal(text, &head)
		if head.Derivation != "constraint" && head.Kind != "logical" {
			all = append(all, text)
		}
		return err
	})).To(Succeed())
	text, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return text
}
