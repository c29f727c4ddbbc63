package fhir_test

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const chipped = `{"resourceType":"Patient","identifier":[{"system":"urn:chip","value":"985"},{"value":"A,1"}],"name":[{"text":"Rex"}]}`

var _ = Describe("Search by identifier", func() {
	It("takes the four forms of a token, or and and", func(ctx context.Context) {
		s := newSite(ctx)
		Expect(s.do("PUT", "/patient/rex", chipped).status).To(Equal(http.StatusCreated))
		Expect(s.do("PUT", "/patient/luna", `{"resourceType":"Patient","identifier":[{"system":"urn:other","value":"985"}]}`).status).To(Equal(http.StatusCreated))
		Expect(s.do("PUT", "/person/rex", `{"resourceType":"Person","identifier":[{"system":"urn:chip","value":"985"}]}`).status).To(Equal(http.StatusCreated))
		for query, want := range map[string][]string{
			"identifier=985":                              {"luna", "rex"},
			"identifier=urn:chip|985":                     {"rex"},
			"identifier=urn:chip|":                        {"rex"},
			"identifier=|985":                             {},
			`identifier=|A\,1`:                            {"rex"},
			"identifier=urn:chip|985,urn:other|985":       {"luna", "rex"},
			"identifier=985&identifier=urn:other|":        {"luna"},
			"identifier=986":                              {},
			"identifier=985&_id=rex":                      {"rex"},
			"identifier=985&_id=other":                    {},
			"identifier=985&_lastUpdated=lt2020":          {},
			"identifier=urn:chip|985&_lastUpdated=gt2020": {"rex"},
		} {
			Expect(s.do("GET", "/patient?_sort=_id&"+query, "").json().ids()).To(Equal(want), query)
		}
		Expect(s.do("GET", "/patient?identifier=a|b|c", "").status).To(Equal(http.StatusBadRequest))
		By("following what is stored")
		s.do("PUT", "/patient/rex", `{"resourceType":"Patient","identifier":[{"value":"7"}]}`)
		Expect(s.do("GET", "/patient?identifier=985", "").json().ids()).To(Equal([]string{"luna"}))
		s.do("DELETE", "/patient/luna", "")
		Expect(s.do("GET", "/patient?identifier=985", "").json().ids()).To(BeEmpty())
	})
})

var _ = Describe("If-None-Exist", func() {
	It("creates when nothing matches, answers the one that does, and refuses several", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=urn:chip|985"))
		Expect(created.status).To(Equal(http.StatusCreated))
		for _, criteria := range []string{
			"identifier=urn:chip|985", "?identifier=urn:chip|985", `identifier=A\,1`, "patient?identifier=985", "/Patient?identifier=985",
			s.base + "/Patient?identifier=urn%3Achip%7C985&_format=json", s.base + "/patient?identifier=985&_pretty=true",
		} {
			again := s.do("POST", "/patient", chipped, with("If-None-Exist", criteria))
			Expect(again.status).To(Equal(http.StatusOK), criteria)
			Expect(again.body).To(Equal(created.body))
			Expect(again.header.Get("Location")).To(Equal(created.header.Get("Location")))
			Expect(again.header.Get("ETag")).To(Equal(`W/"1"`))
		}
		found := s.do("POST", "/patient", `{"resourceType":"Patient"}`, with("If-None-Exist", "identifier=urn:chip|985"), with("Prefer", "return=OperationOutcome"))
		Expect(found.json().at("issue", 0, "diagnostics")).To(ContainSubstring("matches the criteria"))
		Expect(s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=other")).status).To(Equal(http.StatusCreated))
		several := s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=urn:chip|985"))
		Expect(several.status).To(Equal(http.StatusPreconditionFailed))
		Expect(several.code()).To(Equal("multiple_matches"))
	})

	It("creates again once the record is gone or matches no more", func(ctx context.Context) {
		s := newSite(ctx)
		first := s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=985"))
		Expect(first.status).To(Equal(http.StatusCreated))
		s.do("DELETE", "/patient/"+first.json()["id"].(string), "")
		second := s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=985"))
		Expect(second.status).To(Equal(http.StatusCreated))
		Expect(second.json()["id"]).NotTo(Equal(first.json()["id"]))
	})

	It("refuses criteria that choose nothing, and callers who may not search", func(ctx context.Context) {
		s := newSite(ctx)
		for _, criteria := range []string{
			"", "_count=1", "colour=brown", "identifier=%zz", "_format=json", "Person?identifier=985", s.base + "/Person?identifier=985",
			"https://elsewhere.example.org/fhir/Patient?identifier=985",
			"name=M\xfcller", // Latin-1, which some clients write into headers and which would match no record
		} {
			Expect(s.do("POST", "/patient", chipped, with("If-None-Exist", criteria)).status).To(Equal(http.StatusBadRequest), criteria)
		}
		Expect(s.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=985"), with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
	})

	It("takes criteria of all kinds, also those that lead to other records", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/Organization/o", `{"resourceType":"Organization","name":"Zoo"}`)
		const body = `{"resourceType":"Patient","name":[{"family":"Rex"}],"birthDate":"2020-01-02","managingOrganization":{"reference":"Organization/o"}}`
		criteria := []string{
			"name=rex", "family:exact=Rex&birthdate=2020", "birthdate=ge2020", "organization=o", "organization=Organization/o", "organization.name=zoo",
			"deceased=false&name:contains=EX", "gender:missing=true&family=rex", "gender:not=male&family=rex", "organization=" + s.base + "/Organization/o",
		}
		Expect(s.do("POST", "/patient", body, with("If-None-Exist", criteria[0])).status).To(Equal(http.StatusCreated))
		for _, each := range criteria {
			Expect(s.do("POST", "/patient", body, with("If-None-Exist", each)).status).To(Equal(http.StatusOK), each)
			Expect(s.do("PATCH", "/patient?"+each, `[{"op":"replace","path":"/birthDate","value":"2020-01-02"}]`, sendPatch).status).To(Equal(http.StatusOK), each)
		}
		for _, refused := range []string{"name=rex&_sort=name", "name=rex&_include=*", "name=rex&_count=1", "_type=Patient", "name:above=x", "_elements=name&name=rex"} {
			Expect(s.do("POST", "/patient", body, with("If-None-Exist", refused)).status).To(Equal(http.StatusBadRequest), refused)
		}
	})

	It("makes one record of 64 creates at once, however the criteria are written", func(ctx context.Context) {
		s := newSite(ctx)
		statuses := make([]int, 64)
		criteria := []string{"identifier=985,urn:x|1&name=rex", "name=REX&identifier=urn:x|1,985", "name=r%C3%A9x&identifier=985,985,urn:x|1"}
		var group sync.WaitGroup
		for i := range statuses {
			group.Go(func() {
				defer GinkgoRecover()
				statuses[i] = s.do("POST", "/patient", chipped, with("If-None-Exist", criteria[i%len(criteria)])).status
			})
		}
		group.Wait()
		Expect(statuses).To(ContainElement(http.StatusCreated))
		Expect(statuses).To(HaveEach(BeElementOf(http.StatusCreated, http.StatusOK)))
		Expect(s.do("GET", "/patient?identifier=985", "").json().ids()).To(HaveLen(1))
	}, SpecTimeout(time.Minute))
})
