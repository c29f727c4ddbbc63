package clients_test

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

	"github.com/paddock-health/paddock/hack/dev/examples"
)

var _ = Describe("The CapabilityStatement", func() {
	It("is valid to another validator", func(ctx SpecContext) {
		program, err := os.ReadFile(filepath.Join("..", "r4check", "check.mjs"))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(nodeLibrary.folder(), "check.mjs"), program, 0o644)).To(Succeed())
		definitions := filepath.Join(GinkgoT().TempDir(), "definitions.json")
		Expect(os.WriteFile(definitions, structureDefinitions(ctx), 0o600)).To(Succeed())
		judge := func(resource []byte) string {
			GinkgoHelper()
			line, err := json.Marshal(string(resource))
			Expect(err).NotTo(HaveOccurred())
			command := exec.CommandContext(ctx, "node", "check.mjs")
			command.Dir = nodeLibrary.folder()
			command.Stdin = strings.NewReader(definitions + "\n" + string(line) + "\n")
			var complaints bytes.Buffer
			command.Stderr = &complaints
			output, err := command.Output()
			Expect(err).NotTo(HaveOccurred(), "%s%s", output, complaints.String())
			return strings.TrimSpace(string(output))
		}
		for _, site := range []string{clusterSite, postgresSite} {
			statement := send("GET", site, "metadata", nil)
			Expect(statement.status).To(Equal(200))
			Expect(judge(statement.body)).To(Equal("[]"))
			By("finding what is wrong with an invalid one")
			wrong := bytes.Replace(statement.body, []byte(`"kind":"instance"`), []byte(`"kind":["instance"]`), 1)
			Expect(judge(wrong)).NotTo(Equal("[]"))
		}
	})
})

// structureDefinitions returns HL7's definitions of all types, as one array.
func structureDefinitions(ctx context.Context) []byte {
	GinkgoHelper()
	path, err := examples.Fetch(ctx, bin)
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
