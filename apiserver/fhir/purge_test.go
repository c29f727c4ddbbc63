package fhir_test

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
)

// purgeEngines are the ways to open a site, by engine.
var purgeEngines = []TableEntry{
	Entry("in the cluster", newSite),
	Entry("in Postgres", newPostgresSite),
}

type opener = func(context.Context, ...func(*fhir.Endpoint)) site

// purged are the counts by type in the receipt of a $purge. It expects that the receipt has nothing
// that identifies a record.
func purged(a answer, secrets ...string) map[string]int {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	receipt := a.json()
	Expect(receipt).To(HaveKeyWithValue("resourceType", "Parameters"))
	for _, secret := range secrets {
		Expect(a.body).NotTo(ContainSubstring(secret))
	}
	counts := map[string]int{}
	named := map[string]document{}
	for _, each := range receipt["parameter"].([]any) {
		parameter := document(each.(map[string]any))
		if parameter["name"] == "purged" {
			counts[parameter.at("part", 0, "valueCode").(string)] = int(parameter.at("part", 1, "valueInteger").(float64))
		}
		named[parameter["name"].(string)] = parameter
	}
	Expect(named["return"].at("resource", "issue", 0, "details", "coding", 0, "code")).To(Equal("purged"))
	Expect(named["time"]["valueInstant"]).To(MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`))
	Expect(named["outside"]["valueString"]).To(ContainSubstring("backups"))
	return counts
}

var _ = Describe("$purge", func() {
	DescribeTable("removes a record of any type with its history, live or deleted",
		func(ctx context.Context, open opener) {
			s := open(ctx)
			for i, segment := range []string{"Organization", "healthcare-service"} {
				body := []string{practice, `{"resourceType":"HealthcareService","name":"Vet"}`}[i]
				s.put("/"+segment+"/a", identified("a", body))
				s.put("/"+segment+"/a", identified("a", strings.Replace(body, `"name":"`, `"name":"Mulberry `, 1)))
				if i == 1 {
					Expect(s.do("DELETE", "/"+segment+"/a", "").status).To(Equal(http.StatusOK))
				}
				operation := []string{"$purge", "%24purge"}[i]
				Expect(purged(s.do("POST", "/"+segment+"/A/"+operation, ""), "Mulberry", `/a`)).To(HaveLen(1))
				for _, path := range []string{"/a", "/a/_history", "/a/_history/1", "/a/_history/2"} {
					Expect(s.do("GET", "/"+segment+path, "").status).To(Equal(http.StatusNotFound), path)
				}
				Expect(s.do("GET", "/"+segment+"/_history", "").json()["total"]).To(BeEquivalentTo(0))
				Expect(s.do("GET", "/"+segment, "").json().ids()).To(BeEmpty())
				again := s.do("POST", "/"+segment+"/a/$purge", "")
				Expect(again.status).To(Equal(http.StatusNotFound), again.body)
				Expect(again.code()).To(Equal("resource_not_found"))
				By("a namesake starts over")
				a := s.put("/"+segment+"/a", identified("a", body))
				Expect(a.status).To(Equal(http.StatusCreated))
				Expect(a.header.Get("ETag")).To(Equal(`W/"1"`))
			}
		}, purgeEngines)

	DescribeTable("removes what belongs to a Patient alone",
		func(ctx context.Context, open opener) {
			s := open(ctx, func(e *fhir.Endpoint) { e.EnforceReferences = false })
			fill := func() {
				s.put("/Patient/rex", identified("rex", `{"resourceType":"Patient","name":[{"text":"Rex"}]}`))
				s.put("/Patient/bella", identified("bella", `{"resourceType":"Patient","link":[{"other":{"reference":"Patient/rex"},"type":"seealso"}]}`))
				s.put("/RelatedPerson/owner", identified("owner", `{"resourceType":"RelatedPerson","patient":{"reference":"Patient/rex"},"name":[{"text":"Ann"}]}`))
				s.put("/Device/chip", identified("chip", `{"resourceType":"Device","patient":{"reference":"`+s.base+`/Patient/REX"}}`))
				s.put("/RelatedPerson/other", identified("other", `{"resourceType":"RelatedPerson","patient":{"reference":"Patient/bella"}}`))
				s.put("/Person/one", identified("one", `{"resourceType":"Person","link":[{"target":{"reference":"Patient/rex"}}]}`))
				s.put("/Person/both", identified("both", `{"resourceType":"Person","link":[{"target":{"reference":"Patient/rex"}},{"target":{"reference":"Patient/bella"}}]}`))
				s.put("/Group/herd", identified("herd", `{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/rex"}},{"entity":{"reference":"Patient/bella"}}]}`))
			}
			fill()
			Expect(purged(s.do("POST", "/Patient/rex/$purge?compartment=false", ""))).To(Equal(map[string]int{"Patient": 1}))
			Expect(s.do("GET", "/RelatedPerson/owner", "").status).To(Equal(http.StatusOK))
			fill()
			Expect(s.do("GET", "/Patient/rex/Device", "").json().ids()).To(Equal([]string{"chip"}))
			a := s.do("POST", "/patient/rex/$purge", `{"resourceType":"Parameters","parameter":[{"name":"compartment","valueBoolean":true}]}`)
			Expect(purged(a, "owner", "Ann", "Rex")).To(Equal(map[string]int{"Patient": 1, "RelatedPerson": 1, "Device": 1, "Person": 1}))
			Expect(a.body).To(ContainSubstring(`{"name":"shared","valueInteger":3}`))
			for _, path := range []string{"/Patient/rex", "/RelatedPerson/owner", "/Device/chip", "/Person/one"} {
				Expect(s.do("GET", path, "").status).To(Equal(http.StatusNotFound), path)
			}
			for _, path := range []string{"/Patient/bella", "/RelatedPerson/other", "/Person/both", "/Group/herd"} {
				Expect(s.do("GET", path, "").status).To(Equal(http.StatusOK), path)
			}
		}, purgeEngines)

	It("keeps what other records refer to, unless they are purged too", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Patient/rex", identified("rex", `{"resourceType":"Patient"}`))
		s.put("/RelatedPerson/owner", identified("owner", `{"resourceType":"RelatedPerson","patient":{"reference":"Patient/rex"}}`))
		expectReferenced(s.do("POST", "/Patient/rex/$purge?compartment=false", ""), "RelatedPerson/owner")
		s.put("/Group/herd", identified("herd", `{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/rex"}},{"entity":{"reference":"Patient/rex"}}]}`))
		s.put("/Organization/oak", identified("oak", practice))
		s.put("/Group/herd", identified("herd", `{"resourceType":"Group","type":"animal","actual":true,"managingEntity":{"reference":"Organization/oak"},"member":[{"entity":{"reference":"Patient/rex"}}]}`))
		s.put("/Patient/bella", identified("bella", `{"resourceType":"Patient","link":[{"other":{"reference":"Patient/rex"},"type":"seealso"}]}`))
		expectReferenced(s.do("POST", "/Patient/rex/$purge", ""), "Patient/bella")
		Expect(s.do("GET", "/RelatedPerson/owner", "").status).To(Equal(http.StatusOK), "a refused purge removes nothing")
		Expect(purged(s.do("POST", "/Patient/bella/$purge", ""))).To(Equal(map[string]int{"Patient": 1}))
		Expect(purged(s.do("POST", "/Patient/rex/$purge", ""))).To(Equal(map[string]int{"Patient": 1, "RelatedPerson": 1, "Group": 1}))
	})

	DescribeTable("needs the verb purge", func(ctx context.Context, open opener) {
		s := open(ctx)
		s.put("/Patient/rex", identified("rex", `{"resourceType":"Patient"}`))
		a := s.do("POST", "/Patient/rex/$purge", "", with("X-Caller", "no-purge"))
		Expect(a.status).To(Equal(http.StatusForbidden), a.body)
		Expect(a.body).To(ContainSubstring("may not purge patients"))
		Expect(s.do("POST", "/Patient/rex/$purge", "", with("X-Caller", "no-delete")).status).To(Equal(http.StatusOK))
	}, purgeEngines)

	DescribeTable("refuses other parameters",
		func(ctx context.Context, path, body, code string) {
			s := newSite(ctx)
			s.put("/Patient/rex", identified("rex", `{"resourceType":"Patient"}`))
			s.put("/Organization/oak", identified("oak", practice))
			a := s.do("POST", path, body)
			Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
			Expect(a.code()).To(Equal(code))
			Expect(s.do("GET", "/Patient/rex", "").status).To(Equal(http.StatusOK))
		},
		Entry("a value", "/Patient/rex/$purge?compartment=1", "", "invalid_parameters"),
		Entry("no value", "/Patient/rex/$purge?compartment=", "", "invalid_parameters"),
		Entry("another name", "/Patient/rex/$purge?history=true", "", "invalid_query"),
		Entry("another type", "/Organization/oak/$purge?compartment=true", "", "invalid_parameters"),
		Entry("a resource", "/Patient/rex/$purge", `{"resourceType":"Patient"}`, "invalid_parameters"),
		Entry("broken JSON", "/Patient/rex/$purge", `{"resourceType"`, "invalid_parameters"),
		Entry("a text", "/Patient/rex/$purge", `{"resourceType":"Parameters","parameter":[{"name":"compartment","valueString":"true"}]}`, "invalid_parameters"),
		Entry("an object for the parameters", "/Patient/rex/$purge", `{"resourceType":"Parameters","parameter":{"name":"compartment"}}`, "invalid_parameters"),
		Entry("another parameter", "/Patient/rex/$purge", `{"resourceType":"Parameters","parameter":[{"name":"all","valueBoolean":true}]}`, "invalid_parameters"),
		Entry("both ways", "/Patient/rex/$purge?compartment=true", `{"resourceType":"Parameters","parameter":[{"name":"compartment","valueBoolean":true}]}`, "invalid_parameters"),
	)

	DescribeTable("is audited: the log keeps the id, and says purged", func(ctx context.Context, open opener) {
		s := newAudited(ctx, open, audit.Settings{})
		as := with("X-Caller", "officer")
		s.do("PUT", "/Patient/rex", identified("rex", `{"resourceType":"Patient","name":[{"text":"Mulberry"}]}`), as)
		s.do("PUT", "/RelatedPerson/owner", identified("owner", `{"resourceType":"RelatedPerson","patient":{"reference":"Patient/rex"}}`), as)
		Expect(s.do("POST", "/Patient/rex/$purge", "", as).status).To(Equal(http.StatusOK))
		for _, entity := range []string{"Patient/rex", "RelatedPerson/owner"} {
			lines := s.events("action=D&entity=" + entity)
			Expect(lines).To(HaveLen(1))
			Expect(lines[0]).To(And(HavePrefix("officer purge D 0 "), ContainSubstring(entity)))
		}
		Expect(s.do("GET", "/AuditEvent", "", as).body).NotTo(ContainSubstring("Mulberry"))
	}, purgeEngines)
})
