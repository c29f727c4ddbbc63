package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// bulkManifest has two Sites with a ServiceAccount that can write their records.
const bulkManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec: {storage: {cluster: {maxRecords: 20000}}}
`

var _ = Describe("export and import", Ordered, func() {
	const patients = 2000
	var dir string
	bulk := func(command, site, directory string, more ...string) []string {
		return append([]string{command, site, "-n", site, "--as-service-account", "editor", "--directory", directory}, more...)
	}

	BeforeAll(func(ctx SpecContext) {
		for _, site := range []string{"herd", "flock"} {
			apply(ctx, fmt.Sprintf(bulkManifest, site))
			kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "-n", site, "site/"+site)
		}
		var err error
		dir, err = os.MkdirTemp("", "paddock-bulk")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		source := filepath.Join(dir, "source")
		Expect(os.Mkdir(source, 0o700)).To(Succeed())
		var all, related strings.Builder
		for i := range patients {
			fmt.Fprintf(&all, `{"resourceType":"Patient","id":"p%d","name":[{"family":"Rex %d"}]}`+"\n", i, i)
			fmt.Fprintf(&related, `{"resourceType":"RelatedPerson","id":"r%d","patient":{"reference":"Patient/p%d"}}`+"\n", i, i)
		}
		Expect(os.WriteFile(filepath.Join(source, "Patient.ndjson"), []byte(all.String()), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(source, "RelatedPerson.ndjson"), []byte(related.String()), 0o600)).To(Succeed())
		Eventually(func() int { // the rights of a new namespace are cached
			return run(ctx, bulk("import", "herd", source, "--dry-run")...).code
		}).WithContext(ctx).WithTimeout(patience).Should(Equal(0))
	})

	It("finish what was killed, with nothing lost or doubled", func(ctx SpecContext) {
		source := filepath.Join(dir, "source")
		state := filepath.Join(source, ".paddock-import.json")
		By("killing the plugin in the middle of an import, then the API server")
		killed, excluded := 0, 0
		for range 3 {
			session := start(bulk("import", "herd", source)...)
			before, _ := os.ReadFile(state) // absent at first
			Eventually(func(g Gomega) {
				now, err := os.ReadFile(state)
				g.Expect(err == nil && string(now) != string(before) || session.ExitCode() >= 0).To(BeTrue())
			}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
			if session.ExitCode() < 0 {
				killed++
				session.Signal(syscall.SIGSTOP)
				if second := run(ctx, bulk("import", "herd", source)...); second.code != 0 { // the first may have ended
					Expect(second.stderr).To(ContainSubstring("is in use by another process"))
					excluded++
				}
			}
			session.Kill().Wait(patience)
		}
		Expect(killed).To(BeNumerically(">", 0))
		Expect(excluded).To(BeNumerically(">", 0))
		session := start(bulk("import", "herd", source)...)
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		Eventually(session).WithContext(ctx).WithTimeout(2 * patience).Should(HaveField("ExitCode()", 0))
		Expect(string(session.Out.Contents())).To(MatchRegexp(`created +\d+`))
		Expect(state).NotTo(BeAnExistingFile())
		Expect(contentOf(filepath.Join(source, "import-errors.jsonl"))).To(BeEmpty())

		By("killing the plugin in the middle of an export, then the API server")
		first := filepath.Join(dir, "first")
		Eventually(func(g Gomega) { // the export may end before it is killed
			Expect(os.RemoveAll(first)).To(Succeed())
			session := start(bulk("export", "herd", first)...)
			Eventually(func() bool {
				_, err := os.Stat(filepath.Join(first, ".paddock-export.json"))
				return err == nil || session.ExitCode() >= 0
			}).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
			session.Kill().Wait(patience)
			g.Expect(filepath.Join(first, ".paddock-export.json")).To(BeAnExistingFile())
			g.Expect(filepath.Join(first, "manifest.json")).NotTo(BeAnExistingFile())
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		result := run(ctx, bulk("export", "herd", first, "-o", "json")...)
		Expect(result.code).To(Equal(0), result.stderr)
		Expect(result.stderr).NotTo(ContainSubstring("starts again"), "the job survives")
		type exported struct{ Records map[string]int }
		Expect(decode[exported](result.stdout).Records).To(Equal(map[string]int{"Patient": patients, "RelatedPerson": patients}))
		Expect(filepath.Join(first, "manifest.json")).To(BeAnExistingFile())
		Expect(filepath.Join(first, ".paddock-export.json")).NotTo(BeAnExistingFile())

		By("moving what was exported to another site")
		Expect(ok(ctx, bulk("import", "flock", first)...)).To(MatchRegexp(`created +%d\n`, 2*patients))
		Expect(ok(ctx, bulk("import", "flock", first)...)).To(MatchRegexp(`unchanged +%d\n`, 2*patients))
		second := filepath.Join(dir, "second")
		ok(ctx, bulk("export", "flock", second)...)
		Expect(resourcesIn(second)).To(Equal(resourcesIn(first)))
		Expect(resourcesIn(first)).To(HaveLen(2 * patients))
	})

	It("report what fails", func(ctx SpecContext) {
		bad := filepath.Join(dir, "bad")
		Expect(os.Mkdir(bad, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(bad, "Patient.ndjson"), []byte(`{"resourceType":"Patient","id":"fine"}`+"\n\n"+`{"resourceType":"Patient","id":"bad","active":"yes"}`), 0o600)).To(Succeed())
		for _, more := range [][]string{{"--dry-run"}, nil} {
			result := run(ctx, bulk("import", "herd", bad, more...)...)
			Expect(result.code).To(Equal(1))
			Expect(result.stderr).To(ContainSubstring("error: 1 lines failed; see " + filepath.Join(bad, "import-errors.jsonl")))
			Expect(decode[map[string]any](contentOf(filepath.Join(bad, "import-errors.jsonl")))).To(And(
				HaveKeyWithValue("file", "Patient.ndjson"), HaveKeyWithValue("line", BeEquivalentTo(3)),
				HaveKeyWithValue("expression", "Patient.active"), HaveKeyWithValue("code", "wrong_json_kind"),
			))
		}
		Expect(run(ctx, bulk("export", "herd", bad, "--type", "Observation")...).stderr).To(ContainSubstring("400 Bad Request"))
		Expect(fails(ctx, bulk("import", "herd", filepath.Join(dir, "none"))...)).To(ContainSubstring("does not exist"))
		Expect(fails(ctx, bulk("export", "herd", filepath.Join(dir, "first"))...)).To(ContainSubstring("choose an empty directory"))
	})

	It("export the types and the time of the flags", func(ctx context.Context) {
		some := filepath.Join(dir, "some")
		before := decode[struct{ TransactionTime string }](contentOf(filepath.Join(dir, "first", "manifest.json"))).TransactionTime
		apply := run(ctx, "token", "herd", "-n", "herd", "--as-service-account", "editor")
		put, err := http.NewRequestWithContext(ctx, http.MethodPut, paddock.PublicURL()+"/site/herd/fhir/Patient/later", strings.NewReader(`{"resourceType":"Patient","id":"later"}`))
		Expect(err).NotTo(HaveOccurred())
		put.Header.Set("Authorization", "Bearer "+strings.TrimSpace(apply.stdout))
		put.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(put)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusCreated))
		ok(ctx, bulk("export", "herd", some, "--type", "Patient", "--since", before)...)
		Expect(resourcesIn(some)).To(HaveKey("Patient/later"))
		Expect(len(resourcesIn(some))).To(BeNumerically("<", patients))
	})
})

func contentOf(path string) string {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// resourcesIn returns the resources in the files of an export, without meta, by type and id. None may
// be there twice.
func resourcesIn(directory string) map[string]string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(directory, "*.ndjson"))
	Expect(err).NotTo(HaveOccurred())
	slices.Sort(files)
	found := map[string]string{}
	for _, file := range files {
		for line := range strings.Lines(contentOf(file)) {
			resource := decode[map[string]any](line)
			delete(resource, "meta") // has the time
			key := fmt.Sprint(resource["resourceType"], "/", resource["id"])
			Expect(found).NotTo(HaveKey(key))
			text, err := json.Marshal(resource)
			Expect(err).NotTo(HaveOccurred())
			found[key] = string(text)
		}
	}
	return found
}
