package fhir_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
)

// sendNDJSON is the Content-Type of an import.
var sendNDJSON = with("Content-Type", "application/fhir+ndjson")

// importCounts imports lines and returns the counts of the response.
func (s site) importCounts(path, lines string, options ...option) map[string]int {
	GinkgoHelper()
	counts, _ := s.importAll(path, lines, options...)
	return counts
}

// importAll imports lines and returns the counts of the response, and the first issue of each failed
// line.
func (s site) importAll(path, lines string, options ...option) (counts map[string]int, failed map[int]document) {
	GinkgoHelper()
	a := s.do(http.MethodPost, path, lines, append([]option{sendNDJSON}, options...)...)
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	Expect(a.json()).To(HaveKeyWithValue("resourceType", "Parameters"))
	counts, failed = map[string]int{}, map[int]document{}
	for _, each := range a.json()["parameter"].([]any) {
		p := document(each.(map[string]any))
		if p["name"] != "error" {
			counts[p["name"].(string)] = int(p["valueInteger"].(float64))
			continue
		}
		Expect(p.at("part", 1, "resource", "resourceType")).To(Equal("OperationOutcome"))
		failed[int(p.at("part", 0, "valueInteger").(float64))] = p.at("part", 1, "resource", "issue", 0).(map[string]any)
	}
	Expect(counts["failed"]).To(Equal(len(failed)))
	return counts, failed
}

func counted(created, updated, unchanged, failed int) map[string]int {
	return map[string]int{"created": created, "updated": updated, "unchanged": unchanged, "failed": failed}
}

var _ = Describe("$import", func() {
	engines := []TableEntry{
		Entry("in the cluster", newSite),
		Entry("in Postgres", newPostgresSite),
	}
	type opener = func(context.Context, ...func(*fhir.Endpoint)) site

	DescribeTable("writes each line under its id", func(ctx context.Context, open opener) {
		s := open(ctx)
		s.put("/Patient/old", patientOf("old", `,"active":true`))
		s.put("/Patient/same", patientOf("same", ""))
		lines := strings.Join([]string{
			patientOf("new", `,"meta":{"versionId":"7","lastUpdated":"2020-01-01T00:00:00Z","tag":[{"code":"x"}]}`),
			patientOf("old", `,"active":false`), "", patientOf("same", ""), "\r",
			`{"id":"oak","resourceType":"Location","name":"Oak"}`,
		}, "\n")
		Expect(s.importCounts("/$import", lines)).To(Equal(counted(2, 1, 1, 0)))
		imported := s.do(http.MethodGet, "/Patient/new", "").json()
		Expect(imported.at("meta", "versionId")).To(Equal("1"))
		Expect(imported.at("meta", "tag", 0, "code")).To(Equal("x"))
		Expect(s.do(http.MethodGet, "/Patient/old", "").json()).To(HaveKeyWithValue("active", false))
		By("and changes nothing when it is sent again, also compressed")
		Expect(s.importCounts("/%24import", lines, with("Content-Type", "application/ndjson"))).To(Equal(counted(0, 0, 4, 0)))
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		_, err := w.Write([]byte(lines))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Close()).To(Succeed())
		Expect(s.importCounts("/$import", compressed.String(), with("Content-Encoding", "gzip"))).To(Equal(counted(0, 0, 4, 0)))
		By("and what was exported")
		var all []string
		for line := range strings.Lines(s.do(http.MethodGet, s.exportDone(s.startExport("/$export?_type=Patient")).json().at("output", 0, "url").(string), "").body) {
			all = append(all, line)
		}
		Expect(s.importCounts("/$import", strings.Join(all, ""))).To(Equal(counted(0, 0, 3, 0)))
		Expect(open(ctx).importCounts("/$import", strings.Join(all, ""))).To(Equal(counted(3, 0, 0, 0)))
	}, engines)

	DescribeTable("reports each line that fails, and writes the others", func(ctx context.Context, open opener) {
		s := open(ctx)
		lines := strings.Join([]string{
			patientOf("first", ""),
			patientOf("bad", `,"active":"yes"`),
			`{"resourceType":"Patient","id":`,
			`{"resourceType":"Observation","id":"x"}`,
			`{"id":"x"}`,
			`{"resourceType":"Patient"}`,
			patientOf("a_b", ""),
			`[]`,
			patientOf("twice", `,"active":true`),
			patientOf("twice", `,"active":false`),
			patientOf("last", ""),
		}, "\n")
		check := func(path string, want map[string]int) {
			GinkgoHelper()
			counts, failed := s.importAll(path, lines)
			Expect(counts).To(Equal(want))
			Expect(failed).To(HaveLen(7))
			for line, want := range map[int][2]any{
				2: {"wrong_json_kind", "Patient.active"}, 3: {"unparseable_resource", nil}, 4: {"unknown_resource_type", "resourceType"},
				5: {"unknown_resource_type", "resourceType"}, 6: {"invalid_id", "Patient.id"}, 7: {"invalid_id", "Patient.id"}, 8: {"not_an_object", nil},
			} {
				Expect(failed[line].at("details", "coding", 0, "code")).To(Equal(want[0]), "line %d: %v", line, failed[line])
				if want[1] != nil {
					Expect(failed[line].at("expression", 0)).To(Equal(want[1]), "line %d", line)
				}
			}
		}
		check("/$import?dryRun=true", map[string]int{"valid": 4, "failed": 7})
		Expect(s.do(http.MethodGet, "/_history?_count=0", "").json()["total"]).To(BeEquivalentTo(0))
		check("/$import?dryRun=false", counted(3, 1, 0, 7))
		Expect(s.do(http.MethodGet, "/Patient/twice", "").json()).To(HaveKeyWithValue("active", false))
		Expect(s.do(http.MethodGet, "/Patient/last", "").status).To(Equal(http.StatusOK))
		Expect(s.do(http.MethodGet, "/Patient/bad", "").status).To(Equal(http.StatusNotFound))
	}, engines)

	It("writes lines that refer to later lines, and to each other", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		var lines []string
		for i := range 250 { // more than a batch
			lines = append(lines, fmt.Sprintf(`{"resourceType":"RelatedPerson","id":"r%d","patient":{"reference":"Patient/p%d"}}`, i, i))
		}
		for i := range 250 {
			lines = append(lines, patientOf(fmt.Sprintf("p%d", i), ""))
		}
		lines = append(lines,
			`{"resourceType":"Location","id":"a","partOf":{"reference":"Location/b"}}`,
			`{"resourceType":"Location","id":"b","partOf":{"reference":"Location/a"}}`)
		Expect(s.importCounts("/$import", strings.Join(lines, "\n"))).To(Equal(counted(502, 0, 0, 0)))
		By("the last line of a record wins, also if an earlier one waits")
		Expect(s.importCounts("/$import", strings.Join([]string{
			patientOf("again", `,"active":true,"managingOrganization":{"reference":"Organization/later"}`),
			patientOf("again", `,"active":false`),
			patientOf("AGAIN", `,"gender":"male"`),
			`{"resourceType":"Organization","id":"later","name":"Later"}`,
		}, "\n"))).To(Equal(counted(2, 2, 0, 0)))
		Expect(s.do(http.MethodGet, "/Patient/again", "").json()).To(And(HaveKeyWithValue("gender", "male"), Not(HaveKey("active"))))
		counts, failed := s.importAll("/$import", patientOf("fine", "")+"\n"+patientOf("dangles", `,"managingOrganization":{"reference":"Organization/none"}`))
		Expect(counts).To(Equal(counted(1, 0, 0, 1)))
		Expect(failed[2].at("details", "coding", 0, "code")).To(Equal("reference_not_found"))
		Expect(failed[2].at("expression", 0)).To(Equal("Patient.managingOrganization.reference"))
	})

	DescribeTable("needs the rights of each write, and hides what is hidden", func(ctx context.Context, open opener) {
		s := open(ctx)
		s.put("/Patient/old", patientOf("old", ""))
		const restricted = `,"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"R"}]}`
		s.put("/Patient/vip", patientOf("vip", restricted))
		for caller, want := range map[string]map[string]int{"no-update": counted(0, 0, 0, 2), "no-create": counted(0, 0, 1, 1)} {
			counts, failed := s.importAll("/$import", patientOf("old", "")+"\n"+patientOf("new", ""), with("X-Caller", caller))
			Expect(counts).To(Equal(want), caller)
			Expect(failed[2].at("details", "coding", 0, "code")).To(Equal("permission_denied"), caller)
		}
		restrictNurse(s)
		counts, failed := s.importAll("/$import", patientOf("vip", "")+"\n"+patientOf("new", ""), with("X-Caller", "nurse"))
		Expect(counts).To(Equal(counted(1, 0, 0, 1)))
		Expect(failed[1].at("details", "coding", 0, "code")).To(Equal("id_taken"))
		Expect(s.do(http.MethodGet, "/Patient/vip", "").json().at("meta", "security", 0, "code")).To(Equal("R"))
		By("or the only ids that may be updated, on a site that chooses ids")
		chooses := open(ctx, func(at *fhir.Endpoint) { at.UpdateCreate = false })
		id := chooses.do(http.MethodPost, "/Patient", `{"resourceType":"Patient"}`).json()["id"].(string)
		counts, failed = chooses.importAll("/$import", patientOf(id, `,"active":true`)+"\n"+patientOf("new", ""))
		Expect(counts).To(Equal(counted(0, 1, 0, 1)))
		Expect(failed).To(HaveKey(2))
	}, engines)

	DescribeTable("records which lines the caller may not write", func(ctx context.Context, open opener) {
		a := newAudited(ctx, open, audit.Settings{})
		for _, each := range []struct{ caller, path, id string }{
			{"vet", "/$import", "old"}, {"no-update", "/$import", "old"}, {"no-update", "/$import?dryRun=true", "other"}, {"no-create", "/$import", "new"},
		} {
			a.importCounts(each.path, patientOf(each.id, ""), with("X-Caller", each.caller))
		}
		Expect(a.events("subtype=operation")).To(Equal([]string{
			"no-create operation E 0 Patient/new rule:rbac",
			"no-update operation E 0 Patient/other rule:rbac",
			"no-update operation E 0 Patient/old rule:rbac",
			"vet operation E 0 Patient/old",
		}))
	}, engines)

	It("refuses what it cannot read", func(ctx context.Context) {
		s := newSite(ctx, func(at *fhir.Endpoint) { at.Limits.MaxBodySize = resource.NewQuantity(2000, resource.BinarySI) })
		for _, refused := range []struct {
			path   string
			option option
			body   string
			status int
		}{
			{"/$import", with("Content-Type", "application/json"), patientOf("x", ""), http.StatusUnsupportedMediaType},
			{"/$import", with("Content-Encoding", "br"), patientOf("x", ""), http.StatusUnsupportedMediaType},
			{"/$import", with("Content-Encoding", "gzip"), patientOf("x", ""), http.StatusBadRequest},
			{"/$import?dryRun=maybe", nil, patientOf("x", ""), http.StatusBadRequest},
			{"/$import?mode=x", nil, patientOf("x", ""), http.StatusBadRequest},
		} {
			options := []option{sendNDJSON}
			if refused.option != nil {
				options = append(options, refused.option)
			}
			a := s.do(http.MethodPost, refused.path, refused.body, options...)
			Expect(a.status).To(Equal(refused.status), refused.path+a.body)
			Expect(a.code()).NotTo(BeEmpty())
		}
		Expect(s.do(http.MethodGet, "/$import", "").status).To(Equal(http.StatusMethodNotAllowed))
		By("a line beyond the limit of a body, but not more lines")
		long := patientOf("long", `,"text":{"status":"generated","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\">`+strings.Repeat("x", 2000)+`</div>"}`)
		var lines []string
		for i := range 60 {
			lines = append(lines, patientOf(fmt.Sprintf("p%d", i), ""))
		}
		counts, failed := s.importAll("/$import", long+"\n"+strings.Join(lines, "\n")+"\n"+long)
		Expect(counts).To(Equal(counted(60, 0, 0, 2)))
		Expect(failed[1].at("details", "coding", 0, "code")).To(Equal("too_large"))
		Expect(failed).To(HaveKey(62))
	})
})
