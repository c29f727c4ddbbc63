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
					"status": "200 OK", "location": record + "/_history/2",
					"lastModified": updated.json().at("meta", "lastUpdated"),
				},
			},
			{
				"fullUrl":  record,
				"request":  map[string]any{"method": "POST", "url": "patient"},
				"resource": map[string]any(created.json()),
				"response": map[string]any{
					"status": "201 Created", "location": record + "/_history/1",
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
		Expect(none).NotTo(HaveKey("entry"))
		Expect(none.link("next")).To(BeEmpty())
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
