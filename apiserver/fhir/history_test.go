package fhir_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("History", func() {
	It("lists the versions, newest first, as the contract has it (2.4)", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("POST", "/patient", luna)
		id := created.json()["id"].(string)
		updated := s.put("/patient/"+id, `{"resourceType":"Patient"}`)

		history := s.do("GET", "/patient/"+id+"/history", "").json()
		record := s.base + "/patient/" + id
		Expect(history).To(HaveKeyWithValue("resourceType", "Bundle"))
		Expect(history).To(HaveKeyWithValue("type", "history"))
		Expect(history).To(HaveKeyWithValue("total", BeEquivalentTo(2)))
		Expect(history.entries()).To(Equal([]document{
			{
				"fullUrl":  record,
				"request":  map[string]any{"method": "PUT", "url": "patient/" + id},
				"resource": map[string]any(updated.json()),
				"response": map[string]any{
					"status": "200 OK", "location": record + "/_history/2", "etag": `W/"2"`,
					"lastModified": updated.json().at("meta", "lastUpdated"),
				},
			},
			{
				"fullUrl":  record,
				"request":  map[string]any{"method": "POST", "url": "patient"},
				"resource": map[string]any(created.json()),
				"response": map[string]any{
					"status": "201 Created", "location": record + "/_history/1", "etag": `W/"1"`,
					"lastModified": created.json().at("meta", "lastUpdated"),
				},
			},
		}))
		for _, entry := range history.entries() {
			Expect(s.do("GET", entry.at("response", "location").(string), "").status).To(Equal(http.StatusOK))
		}
	})

	It("goes on after a delete and is 404 for what never was", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		Expect(s.do("GET", "/patient/a/history", "").json()).To(HaveKeyWithValue("total", BeEquivalentTo(1)))
		Expect(s.do("GET", "/patient/never/history", "").status).To(Equal(http.StatusNotFound))
	})

	It("tells a creation again as one", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		s.put("/patient/a", luna)
		var statuses []any
		for _, entry := range s.do("GET", "/patient/a/history", "", acceptFHIR).json().entries() {
			statuses = append(statuses, entry.at("response", "status"))
		}
		Expect(statuses).To(Equal([]any{"201 Created", "200 OK", "201 Created"}))
	})

	It("comes in pages", func(ctx context.Context) {
		s := newSite(ctx)
		for i := range 5 {
			s.put("/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i))
		}
		var versions []any
		pages := 0
		for next := s.base + "/patient/a/history?_count=2"; next != ""; pages++ {
			page := s.do("GET", next, "").json()
			Expect(page).To(HaveKeyWithValue("total", BeEquivalentTo(5)))
			Expect(page.link("self")).To(Equal(next))
			Expect(page.link("first")).To(Equal(s.base + "/patient/a/history?_count=2"))
			for _, entry := range page.entries() {
				versions = append(versions, entry.at("resource", "meta", "versionId"))
			}
			next = page.link("next")
		}
		Expect(versions).To(Equal([]any{"5", "4", "3", "2", "1"}))
		Expect(pages).To(Equal(3))

		none := s.do("GET", "/patient/a/history?_count=0", "").json()
		Expect(none).To(HaveKeyWithValue("total", BeEquivalentTo(5)))
		Expect(none.entries()).To(BeEmpty())
		Expect(none.link("next")).To(BeEmpty())
	})

	It("of a type and of the site tell what was written to all records", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.put("/practitioner-role/a", `{"resourceType":"PractitionerRole"}`)
		s.put("/patient/b", luna)
		s.do("DELETE", "/patient/b", "")
		s.put("/patient/a", `{"resourceType":"Patient"}`)

		ofType := s.do("GET", "/patient/_history", "", acceptFHIR)
		expectValid(ofType)
		told := func(history document) []string {
			var all []string
			for _, entry := range history.entries() {
				all = append(all, fmt.Sprint(entry.at("request", "method"), " ", entry.at("request", "url"), " ", entry.at("response", "location")))
			}
			return all
		}
		Expect(ofType.json()).To(HaveKeyWithValue("type", "history"))
		Expect(ofType.json()).To(HaveKeyWithValue("total", BeEquivalentTo(4)))
		Expect(ofType.json().link("self")).To(Equal(s.base + "/patient/_history"))
		Expect(told(ofType.json())).To(Equal([]string{
			"PUT patient/a " + s.base + "/patient/a/_history/2",
			"DELETE patient/b " + s.base + "/patient/b/_history/2",
			"PUT patient/b " + s.base + "/patient/b/_history/1",
			"PUT patient/a " + s.base + "/patient/a/_history/1",
		}))
		ofSite := s.do("GET", "/_history", "")
		expectValid(ofSite)
		Expect(ofSite.json()).To(HaveKeyWithValue("total", BeEquivalentTo(4)))
		Expect(ofSite.json().link("self")).To(Equal(s.base + "/_history"))
		Expect(told(ofSite.json())).To(Equal([]string{
			"PUT Patient/a " + s.base + "/Patient/a/_history/2",
			"PUT Patient/b " + s.base + "/Patient/b/_history/1",
			"PUT PractitionerRole/a " + s.base + "/PractitionerRole/a/_history/1",
			"PUT Patient/a " + s.base + "/Patient/a/_history/1",
		}))
		for _, entry := range ofSite.json().entries() {
			Expect(entry).To(HaveKey("resource"))
			Expect(s.do("GET", entry.at("response", "location").(string), "").json()).To(Equal(document(entry.at("resource").(map[string]any))))
			Expect(s.do("GET", entry["fullUrl"].(string), "").status).To(BeElementOf(http.StatusOK, http.StatusGone))
		}
		Expect(s.do("GET", "/_history", "", acceptFHIR).json()).To(HaveKeyWithValue("total", BeEquivalentTo(5)))
		Expect(s.do("HEAD", "/_history", "").status).To(Equal(http.StatusOK))

		By("in pages")
		var paged []string
		for next := s.base + "/_history?_count=2"; next != ""; {
			page := s.do("GET", next, "", acceptFHIR).json()
			Expect(len(page.entries())).To(BeNumerically("<=", 2))
			paged, next = append(paged, told(page)...), page.link("next")
		}
		Expect(paged).To(Equal(told(s.do("GET", "/_history", "", acceptFHIR).json())))
		next := s.do("GET", "/patient/_history?_count=1", "").json().link("next")
		for _, path := range []string{"/_history", "/person/_history", "/patient/a/_history", "/patient"} {
			Expect(s.do("GET", path+"?_count=1&_page_token="+tokenIn(next), "").code()).To(Equal("invalid_query"), path)
		}

		By("to whom may list")
		for _, path := range []string{"/patient/_history", "/_history"} {
			Expect(s.do("GET", path, "", with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
		}
		Expect(s.do("GET", "/person/_history", "").json()).To(HaveKeyWithValue("total", BeEquivalentTo(0)))
	})

	It("is told since an instant, and at a time", func(ctx context.Context) {
		s := newSite(ctx)
		var updated []string
		for i := range 3 {
			a := s.put("/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i))
			updated = append(updated, a.json().at("meta", "lastUpdated").(string))
		}
		versions := func(path string) []any {
			found := []any{}
			for _, entry := range s.do("GET", path, "").json().entries() {
				found = append(found, entry.at("resource", "meta", "versionId"))
			}
			return found
		}
		for _, path := range []string{"/patient/a/_history", "/patient/a/history", "/Patient/_history", "/_history"} {
			Expect(versions(path+"?_since="+updated[1])).To(Equal([]any{"3", "2"}), path)
			Expect(versions(path+"?_since=2999")).To(BeEmpty(), path)
			Expect(versions(path+"?_at="+updated[1])).To(Equal([]any{"2"}), path)
			Expect(versions(path+"?_at=lt"+updated[2])).To(Equal([]any{"2", "1"}), path)
			Expect(versions(path+"?_at=2999")).To(Equal([]any{"3"}), path)
			Expect(versions(path+"?_at=1999")).To(BeEmpty(), path)
			Expect(s.do("GET", path+"?_since="+updated[1]+"&_count=1", "").json().link("next")).To(ContainSubstring("_since="), path)
			Expect(s.do("GET", path+"?_since=x&_at=y&_list=z", "").json()["issue"]).To(HaveLen(3), path)
		}
	})

	It("takes no page token of another record, nor other parameters", func(ctx context.Context) {
		s := newSite(ctx)
		for _, id := range []string{"a", "b"} {
			s.put("/patient/"+id, luna)
			s.put("/patient/"+id, `{"resourceType":"Patient"}`)
		}
		token := tokenIn(s.do("GET", "/patient/a/history?_count=1", "").json().link("next"))
		Expect(s.do("GET", "/patient/a/history?_count=1&_page_token="+token, "").status).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/patient/b/history?_count=1&_page_token="+token, "").code()).To(Equal("invalid_query"))
		Expect(s.do("GET", "/patient?_count=1&_page_token="+token, "").code()).To(Equal("invalid_query"))
		Expect(s.do("GET", "/patient/a/history?_id=a", "").code()).To(Equal("invalid_query"))
	})
})
