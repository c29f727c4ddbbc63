package clients_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

var _ = Describe("SMART Fetch", func() {
	for _, site := range []string{clusterSite, postgresSite} {
		It("exports all records of two types of the site "+site+" by $export", func(ctx SpecContext) {
			want := map[string][]byte{} // by type and id
			for _, line := range []string{
				`{"resourceType":"Patient","id":"bulk-1","active":true,"multipleBirthInteger":2}`,
				`{"resourceType":"Patient","id":"bulk-2","name":[{"text":"Müller, Ünal"}]}`,
				`{"resourceType":"Device","id":"bulk-3","patient":{"reference":"Patient/bulk-1"}}`,
			} {
				var head struct{ ResourceType, ID string }
				Expect(json.Unmarshal([]byte(line), &head)).To(Succeed())
				put := send(http.MethodPut, site, head.ResourceType+"/"+head.ID, []byte(line))
				Expect(put.status).To(BeElementOf(http.StatusOK, http.StatusCreated), "%s", put.body)
				want[head.ResourceType+"/"+head.ID] = put.body
			}
			dir := GinkgoT().TempDir()
			token := filepath.Join(dir, "token")
			Expect(os.WriteFile(token, []byte(tokens[site]), 0o600)).To(Succeed())
			command := exec.CommandContext(ctx, filepath.Join("venv", "bin", "smart-fetch"), "export", "--verbose", "--export-mode", "bulk",
				"--fhir-url", traffic.address+"/site/"+site+"/fhir", "--bearer-token", token,
				"--type", "Patient,Device", "--no-default-filters", "--hydration-tasks", "none", "--no-compression", filepath.Join(dir, "out"))
			command.Dir = pythonLibrary.folder()
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s", output)

			got := map[string]int{}
			for _, typeName := range []string{"Patient", "Device"} {
				files, err := filepath.Glob(filepath.Join(dir, "out", typeName+".*.ndjson"))
				Expect(err).NotTo(HaveOccurred())
				for _, file := range files {
					text, err := os.ReadFile(file)
					Expect(err).NotTo(HaveOccurred())
					for line := range bytes.Lines(text) {
						resource, err := r4.Read(bytes.TrimSpace(line), r4.Options{Type: typeName})
						Expect(err).NotTo(HaveOccurred(), "%s", line)
						got[typeName]++
						name := typeName + "/" + resource.ID
						if stored, there := want[name]; there {
							Expect(line).To(MatchJSON(stored))
							delete(want, name)
						}
					}
				}
				Expect(got[typeName]).To(Equal(total(site, typeName)), "records of the type %s", typeName)
			}
			Expect(want).To(BeEmpty(), "records that the export lacks")
			Expect(strings.ToLower(string(output))).To(ContainSubstring("bulk fhir export finished"))
		}, NodeTimeout(2*time.Minute))
	}
})

// total returns the number of records of a type.
func total(site, typeName string) int {
	GinkgoHelper()
	var bundle struct{ Total int }
	Expect(json.Unmarshal(send(http.MethodGet, site, typeName+"?_summary=count", nil).body, &bundle)).To(Succeed())
	return bundle.Total
}
