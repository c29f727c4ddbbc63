package fhir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// respondAsync starts an export.
var respondAsync = with("Prefer", "respond-async")

// startExport kicks off an export and returns the address of its job.
func (s site) startExport(path string, options ...option) string {
	GinkgoHelper()
	a := s.do(http.MethodGet, path, "", append([]option{respondAsync}, options...)...)
	Expect(a.status).To(Equal(http.StatusAccepted), a.body)
	Expect(a.json()).To(HaveKeyWithValue("resourceType", "OperationOutcome"))
	job := a.header.Get("Content-Location")
	Expect(job).To(HavePrefix(s.base + "/$export/"))
	return job
}

// exportDone polls a job until it is complete and returns the response with the manifest.
func (s site) exportDone(job string, options ...option) answer {
	GinkgoHelper()
	var done answer
	Eventually(func(g Gomega) {
		done = s.do(http.MethodGet, job, "", options...)
		if done.status == http.StatusAccepted {
			g.Expect(done.header.Get("X-Progress")).NotTo(BeEmpty())
			g.Expect(done.header.Get("Retry-After")).To(Equal("1"))
		}
		g.Expect(done.status).To(Equal(http.StatusOK), done.body)
	}).WithTimeout(30 * time.Second).Should(Succeed())
	return done
}

// exportLines returns the lines of all files of a manifest, by type.
func (s site) exportLines(manifest answer, options ...option) map[string][]document {
	GinkgoHelper()
	lines := map[string][]document{}
	for _, each := range manifest.json()["output"].([]any) {
		output := document(each.(map[string]any))
		a := s.do(http.MethodGet, output["url"].(string), "", append(options, with("Accept", "application/fhir+ndjson"))...)
		Expect(a.status).To(Equal(http.StatusOK), a.body)
		Expect(a.header.Get("Content-Type")).To(HavePrefix("application/fhir+ndjson"))
		for line := range strings.Lines(a.body) {
			var d document
			Expect(json.Unmarshal([]byte(line), &d)).To(Succeed(), line)
			Expect(d).To(HaveKeyWithValue("resourceType", output["type"]))
			lines[d["resourceType"].(string)] = append(lines[d["resourceType"].(string)], d)
		}
	}
	return lines
}

// exported returns the ids of all records that an export has, as {type}/{id}, sorted.
func (s site) exported(path string, options ...option) []string {
	GinkgoHelper()
	found := []string{}
	for typeName, lines := range s.exportLines(s.exportDone(s.startExport(path, options...), options...), options...) {
		for _, line := range lines {
			found = append(found, typeName+"/"+line["id"].(string))
		}
	}
	slices.Sort(found)
	return found
}

func patientOf(id, more string) string {
	return `{"resourceType":"Patient","id":"` + id + `"` + more + `}`
}

var _ = Describe("$export", func() {
	engines := []TableEntry{
		Entry("in the cluster", newSite),
		Entry("in Postgres", newPostgresSite),
	}
	type opener = func(context.Context, ...func(*fhir.Endpoint)) site

	// fillForExport writes two patients, one of them in a group, and records that refer to them.
	fillForExport := func(s site) {
		s.put("/Organization/org", `{"resourceType":"Organization","id":"org","name":"Oak"}`)
		s.put("/Patient/rex", patientOf("rex", `,"active":true,"birthDate":"2020-01-02","managingOrganization":{"reference":"Organization/org"}`))
		s.put("/Patient/luna", patientOf("luna", `,"active":false`))
		s.put("/RelatedPerson/ann", `{"resourceType":"RelatedPerson","id":"ann","patient":{"reference":"Patient/rex"}}`)
		s.put("/RelatedPerson/bob", `{"resourceType":"RelatedPerson","id":"bob","patient":{"reference":"Patient/luna"}}`)
		s.put("/Group/herd", `{"resourceType":"Group","id":"herd","type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/rex"}}]}`)
		s.put("/Group/empty", `{"resourceType":"Group","id":"empty","type":"animal","actual":true}`)
	}

	DescribeTable("exports the records of its level, type and filters", func(ctx context.Context, open opener) {
		s := open(ctx)
		fillForExport(s)
		for path, want := range map[string][]string{
			"/$export":                 {"Group/empty", "Group/herd", "Organization/org", "Patient/luna", "Patient/rex", "RelatedPerson/ann", "RelatedPerson/bob"},
			"/%24export?_type=Patient": {"Patient/luna", "Patient/rex"},
			"/$export?_type=Organization,Patient&_outputFormat=application/fhir%2Bndjson": {"Organization/org", "Patient/luna", "Patient/rex"},
			"/$export?_type=Organization&_type=Patient":                                   {"Organization/org", "Patient/luna", "Patient/rex"},
			"/Patient/$export":                     {"Group/herd", "Patient/luna", "Patient/rex", "RelatedPerson/ann", "RelatedPerson/bob"},
			"/patient/$export?_type=RelatedPerson": {"RelatedPerson/ann", "RelatedPerson/bob"},
			"/Group/herd/$export":                  {"Group/herd", "Patient/rex", "RelatedPerson/ann"},
			"/Group/empty/$export":                 {"Group/empty"},
			"/$export?_type=Patient&_typeFilter=" + url.QueryEscape("Patient?active=true"):                                 {"Patient/rex"},
			"/$export?_type=Patient&_typeFilter=" + url.QueryEscape("Patient?active=true,Patient?_id=luna,luna2"):          {"Patient/luna", "Patient/rex"},
			"/$export?_type=Patient&_typeFilter=" + url.QueryEscape("Patient?active=true&identifier:not=a;b"):              {"Patient/rex"},
			"/$export?_type=Group,Patient&_typeFilter=Patient%3F_id=rex&_typeFilter=" + url.QueryEscape("Group?_id=empty"): {"Group/empty", "Patient/rex"},
			"/$export?_type=Endpoint": {},
		} {
			Expect(s.exported(path)).To(Equal(want), path)
		}
		By("with a part of the elements")
		lines := s.exportLines(s.exportDone(s.startExport("/$export?_type=Patient&_elements=Patient.birthDate&_elements=Patient.managingOrganization")))["Patient"]
		Expect(lines).To(HaveLen(2))
		for _, line := range lines {
			Expect(line).NotTo(HaveKey("active"))
			Expect(line.at("meta", "tag", 0, "code")).To(Equal("SUBSETTED"))
			if line["id"] == "rex" {
				Expect(line).To(And(HaveKeyWithValue("birthDate", "2020-01-02"), HaveKey("managingOrganization")))
			}
		}
	}, engines)

	DescribeTable("has the versions of its transaction time", func(ctx context.Context, open opener) {
		s := open(ctx)
		fillForExport(s)
		s.put("/Patient/still", patientOf("still", ""))
		job := s.startExport("/$export?_type=Patient")
		s.put("/Patient/rex", patientOf("rex", `,"language":"en"`))
		s.put("/Patient/rex", patientOf("rex", `,"language":"fr"`))
		s.put("/Patient/new", patientOf("new", ""))
		done := s.exportDone(job)
		manifest := done.json()
		Expect(done.header.Get("Content-Type")).To(Equal("application/json"))
		expires, err := http.ParseTime(done.header.Get("Expires"))
		Expect(err).NotTo(HaveOccurred())
		Expect(expires).To(BeTemporally(">", time.Now()))
		Expect(manifest).To(HaveKeyWithValue("request", s.base+"/$export?_type=Patient"))
		Expect(manifest).To(HaveKeyWithValue("requiresAccessToken", true))
		Expect(manifest["error"]).To(BeEmpty())
		lines := s.exportLines(done)["Patient"]
		Expect(lines).To(HaveLen(3))
		for _, line := range lines {
			Expect(line).NotTo(HaveKey("language"))
			Expect(line.at("meta", "versionId")).To(Equal("1"))
		}
		By("the same at each download, without records deleted since")
		Expect(s.do(http.MethodDelete, "/RelatedPerson/bob", "").status).To(Equal(http.StatusOK))
		Expect(s.do(http.MethodDelete, "/Patient/luna", "").status).To(Equal(http.StatusOK))
		Expect(s.exportLines(done)["Patient"]).To(HaveLen(2))

		By("and the next export has what changed since")
		since := url.QueryEscape(manifest["transactionTime"].(string))
		Expect(s.exported("/$export?_type=Patient&_since=" + since)).To(Equal([]string{"Patient/new", "Patient/rex"}))
	}, engines)

	DescribeTable("is bound to its caller, and ends", func(ctx context.Context, open opener) {
		s := open(ctx)
		fillForExport(s)
		ann, bob := with("X-Caller", "ann"), with("X-Caller", "bob")
		job := s.startExport("/$export", ann)
		file := s.exportDone(job, ann).json().at("output", 0, "url").(string)
		for _, address := range []string{job, file} {
			Expect(s.do(http.MethodGet, address, "", bob).status).To(Equal(http.StatusNotFound), address)
		}
		Expect(s.do(http.MethodDelete, job, "", bob).status).To(Equal(http.StatusNotFound))
		Expect(s.do(http.MethodGet, job+"/99", "", ann).status).To(Equal(http.StatusNotFound))
		By("when its caller deletes it")
		Expect(s.do(http.MethodDelete, job, "", ann).status).To(Equal(http.StatusAccepted))
		for _, address := range []string{job, file} {
			a := s.do(http.MethodGet, address, "", ann)
			Expect(a.status).To(Equal(http.StatusNotFound))
			Expect(a.code()).To(Equal("resource_not_found"))
		}
		By("or when it expires, and then leaves no row")
		job = s.startExport("/$export", ann)
		s.exportDone(job, ann)
		clockOffset.Store(int64(25 * time.Hour))
		DeferCleanup(func() { clockOffset.Store(0) })
		Expect(s.do(http.MethodGet, job, "", ann).status).To(Equal(http.StatusNotFound))
		s.startExport("/$export", ann)
		_, err := s.raw.Get(ctx, store.Key{Type: store.JobType, ID: job[strings.LastIndex(job, "/")+1:]})
		Expect(err).To(MatchError(store.ErrNotFound))
	}, Entry("in the cluster", Serial, newSite), Entry("in Postgres", Serial, newPostgresSite))

	DescribeTable("neither exports nor counts hidden records", func(ctx context.Context, open opener) {
		s := open(ctx)
		fillForExport(s)
		restrictNurse(s)
		const restricted = `,"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"R"}]}`
		s.put("/Patient/vip", patientOf("vip", restricted))
		s.put("/Location/safe", `{"resourceType":"Location","id":"safe"`+restricted+`}`)
		nurse := with("X-Caller", "nurse")
		Expect(s.exported("/$export")).To(ContainElements("Patient/vip", "Location/safe"))

		done := s.exportDone(s.startExport("/$export", nurse), nurse)
		Expect(done.body).NotTo(ContainSubstring("Location"), "a type of which all records are hidden")
		Expect(s.exported("/$export", nurse)).NotTo(Or(ContainElement("Patient/vip"), ContainElement("Location/safe")))
		By("also if they are hidden after the export was planned")
		s.put("/Patient/rex", patientOf("rex", restricted))
		ids := []string{}
		for _, line := range s.exportLines(done, nurse)["Patient"] {
			ids = append(ids, line["id"].(string))
		}
		Expect(ids).To(Equal([]string{"luna"}))
		By("and types that the caller may not list")
		lists := with("X-Caller", "lists locations")
		Expect(s.exported("/$export", lists)).To(Equal([]string{"Location/safe"}))
		Expect(s.do(http.MethodGet, "/$export?_type=Patient", "", lists, respondAsync).status).To(Equal(http.StatusForbidden))
		Expect(s.do(http.MethodGet, "/Patient/$export", "", lists, respondAsync).status).To(Equal(http.StatusForbidden))
	}, engines)

	DescribeTable("limits incomplete exports", func(ctx context.Context, open opener) {
		one := int32(1)
		s := open(ctx, func(at *fhir.Endpoint) { at.Limits.ConcurrentExports = &one })
		fillForExport(s)
		job := s.startExport("/$export")
		refused := s.do(http.MethodGet, "/$export", "", respondAsync)
		Expect(refused.status).To(Equal(http.StatusTooManyRequests))
		Expect(refused.header.Get("Retry-After")).To(Equal("30"))
		Expect(refused.code()).To(Equal("too_many_requests"))
		s.exportDone(job)
		second := s.startExport("/$export")
		Expect(s.do(http.MethodDelete, second, "").status).To(Equal(http.StatusAccepted))
		s.startExport("/$export")
	}, engines)

	DescribeTable("is in the audit log, with the records of each file", func(ctx context.Context, open opener) {
		a := newAudited(ctx, open, audit.Settings{Parameters: true})
		vet := with("X-Caller", "vet")
		Expect(a.do(http.MethodPost, "/$import", patientOf("rex", ""), sendNDJSON, vet).status).To(Equal(http.StatusOK))
		job := a.startExport("/$export?_type=Patient", vet)
		a.exportLines(a.exportDone(job, vet), vet)
		Expect(a.do(http.MethodDelete, job, "", vet).status).To(Equal(http.StatusAccepted))
		vets := func() []string { // without repeated requests for the status
			return slices.Compact(slices.DeleteFunc(a.events(""), func(line string) bool { return !strings.HasPrefix(line, "vet") }))
		}
		Eventually(vets).WithContext(ctx).WithTimeout(time.Minute).Should(Equal([]string{
			"vet operation E 0",
			"vet operation E 0 Patient/rex",
			"vet operation E 0",
			"vet operation E 0 parameters:_type",
			"vet operation E 0 Patient/rex",
		}))
	}, engines)

	It("exports a full site", func(ctx context.Context) {
		limits := cluster.DefaultLimits
		limits.MaxRecords = 1
		s := newLimitedSite(ctx, limits)
		s.put("/Patient/rex", patientOf("rex", ""))
		Expect(s.do(http.MethodPut, "/Patient/luna", patientOf("luna", "")).status).To(Equal(http.StatusInsufficientStorage))
		Expect(s.exported("/$export")).To(Equal([]string{"Patient/rex"}))
	})

	It("splits many records into files, each of them once", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		const many = 2500
		ops := make([]store.Op, many)
		for i := range ops {
			text := `{"resourceType":"Patient","id":"","meta":{}}`
			ops[i] = store.Op{
				Kind: store.Put, Key: store.Key{Type: "Patient", ID: fmt.Sprintf("p%d", i)}, Method: store.MethodPut,
				Body: store.Body{JSON: []byte(text), IDOffset: strings.Index(text, `"id":"`) + 6, MetaOffset: strings.Index(text, `"meta":{`) + 8},
			}
		}
		Expect(s.raw.(*postgres.Store).Load(ctx, ops)).To(Succeed()) // all in a millisecond
		s.put("/Patient/last", patientOf("last", ""))
		done := s.exportDone(s.startExport("/$export?_type=Patient"))
		files := done.json()["output"].([]any)
		Expect(len(files)).To(BeNumerically(">=", 3))
		ids := func() map[string]int {
			seen := map[string]int{}
			for _, line := range s.exportLines(done)["Patient"] {
				seen[line["id"].(string)]++
			}
			return seen
		}
		all := ids()
		Expect(all).To(HaveLen(many + 1))
		Expect(all).To(HaveEach(1))
		By("also when the last record of a file is deleted")
		lines := strings.Split(strings.TrimSpace(s.do(http.MethodGet, files[0].(map[string]any)["url"].(string), "").body), "\n")
		var last document
		Expect(json.Unmarshal([]byte(lines[len(lines)-1]), &last)).To(Succeed())
		Expect(s.do(http.MethodDelete, "/Patient/"+last["id"].(string), "").status).To(Equal(http.StatusOK))
		all = ids()
		Expect(all).To(HaveLen(many))
		Expect(all).To(HaveEach(1))
	})

	It("refuses what it cannot do", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/Group/herd", `{"resourceType":"Group","id":"herd","type":"animal","actual":true}`)
		for path, want := range map[string]struct {
			status int
			code   string
		}{
			"/$export?_type=Observation":                 {400, "invalid_query"},
			"/$export?_outputFormat=application/parquet": {400, "invalid_query"},
			"/$export?_since=yesterday":                  {400, "invalid_query"},
			"/$export?patient=rex":                       {400, "invalid_query"},
			"/$export?_elements=a.b.c":                   {400, "invalid_query"},
			"/$export?_typeFilter=active=true":           {400, "invalid_query"},
			"/$export?_typeFilter=Observation%3Fcode=1":  {400, "invalid_query"},
			"/$export?_typeFilter=Patient%3Fcolor=black": {400, "invalid_query"},
			"/$export?_typeFilter=Patient%3F_count=1":    {400, "invalid_query"},
			"/$export?_since=2030&_since=2031":           {400, "invalid_query"},
			"/$export?_type=Patient&_type=Observation":   {400, "invalid_query"},
			"/Patient/$export?_type=Organization":        {400, "invalid_query"},
			"/Group/none/$export":                        {404, "resource_not_found"},
			"/Location/$export":                          {404, "unknown_operation"},
			"/Group/$export":                             {404, "unknown_operation"},
			"/Patient/rex/$export":                       {404, "unknown_operation"},
		} {
			a := s.do(http.MethodGet, path, "", respondAsync)
			Expect(a.status).To(Equal(want.status), path+a.body)
			Expect(a.code()).To(Equal(want.code), path)
		}
		Expect(s.do(http.MethodGet, "/$export", "").code()).To(Equal("invalid_header"))
		Expect(s.do(http.MethodHead, "/$export", "", respondAsync).status).To(Equal(http.StatusMethodNotAllowed))
		Expect(s.do(http.MethodGet, "/$export/none", "").status).To(Equal(http.StatusNotFound))
		Expect(s.do(http.MethodGet, "/$export/a_b", "").status).To(Equal(http.StatusNotFound))
		s.startExport("/$export?color=black", with("Prefer", "respond-async, handling=lenient"))
		batch := s.do(http.MethodPost, "", `{"resourceType":"Bundle","type":"batch","entry":[{"request":{"method":"GET","url":"$export"}}]}`, respondAsync)
		Expect(batch.json().at("entry", 0, "response", "status")).To(HavePrefix("404"))
	})
})
