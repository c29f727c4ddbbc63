package fhir_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The points in which the dialects differ, each shown for both.
var _ = Describe("The dialects differ in", func() {
	const contract, fhir = "application/json", "application/fhir+json; charset=utf-8"

	It("the content type of the answer", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.put("/patient/gone", luna)
		for _, path := range []string{"/patient", "/patient/a", "/patient/a/history", "/patient/a/_history/1", "/patient/none", "/nothing"} {
			Expect(s.do("GET", path, "").header.Get("Content-Type")).To(Equal(contract), path)
			Expect(s.do("GET", path, "", with("Accept", "*/*")).header.Get("Content-Type")).To(Equal(contract), path)
			Expect(s.do("GET", path, "", acceptFHIR).header.Get("Content-Type")).To(Equal(fhir), path)
			Expect(s.do("GET", path+"?_format=application/fhir%2Bjson", "").header.Get("Content-Type")).To(Equal(fhir), path)
			Expect(s.do("GET", path+"?_format=application/json", "", acceptFHIR).header.Get("Content-Type")).To(Equal(contract), path)
		}
		By("telling the body's from the answer's")
		Expect(s.do("POST", "/patient", luna, sendFHIR).header.Get("Content-Type")).To(Equal(contract))
		Expect(s.do("POST", "/patient", luna, acceptFHIR).header.Get("Content-Type")).To(Equal(fhir))
	})

	It("the body of a delete", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		Expect(s.do("DELETE", "/patient/a", "").body).To(Equal(`{"status":200,"statusText":"OK"}`))
		Expect(s.do("DELETE", "/patient/never", "").body).To(Equal(`{"status":200,"statusText":"OK"}`))
		said := s.do("DELETE", "/patient/a", "", acceptFHIR)
		Expect(said.status).To(Equal(http.StatusOK))
		Expect(said.code()).To(Equal("deleted"))
		Expect(said.json().at("issue", 0, "severity")).To(Equal("information"))
	})

	It("history entries of deletions", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")

		By("answering 200 to the history of a deleted record")
		Expect(s.do("GET", "/patient/a", "").status).To(Equal(http.StatusGone))
		for _, path := range []string{"/patient/a/history", "/patient/a/_history"} {
			Expect(s.do("GET", path, "").status).To(Equal(http.StatusOK), path)
			Expect(s.do("GET", path, "", acceptFHIR).status).To(Equal(http.StatusOK), path)
		}

		byContract := s.do("GET", "/patient/a/history", "").json()
		Expect(byContract).To(HaveKeyWithValue("total", BeEquivalentTo(2)))
		Expect(methods(byContract)).To(Equal([]string{"PUT", "PUT"}))
		for _, entry := range byContract.entries() {
			Expect(entry).To(HaveKey("resource"))
		}
		byFHIR := s.do("GET", "/patient/a/history", "", acceptFHIR).json()
		Expect(byFHIR).To(HaveKeyWithValue("total", BeEquivalentTo(4)))
		Expect(methods(byFHIR)).To(Equal([]string{"DELETE", "PUT", "DELETE", "PUT"}))
		Expect(byFHIR.entries()[0]).NotTo(HaveKey("resource"))

		By("counting over all pages")
		page := s.do("GET", "/patient/a/history?_count=1", "").json()
		Expect(page).To(HaveKeyWithValue("total", BeEquivalentTo(2)))
		Expect(methods(page)).To(Equal([]string{"PUT"}))
	})

	It("the entries of a history without any", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		for _, path := range []string{"/patient/a/history?_count=0", "/patient/a/_history?_since=2999", "/patient/_history?_at=1999", "/person/_history", "/_history?_since=2999"} {
			Expect(s.do("GET", path, "").json()).To(HaveKeyWithValue("entry", BeEmpty()), path)
			byFHIR := s.do("GET", path, "", acceptFHIR)
			Expect(byFHIR.json()).NotTo(HaveKey("entry"), path)
			expectValid(byFHIR)
		}
		By("not those of a search, which may lack them by the contract too")
		Expect(s.do("GET", "/person", "").json()).NotTo(HaveKey("entry"))
		By("not in a batch, which is FHIR's alone")
		batch := s.do("POST", "/", bundleOf("batch", asks("GET", "person/_history", "")))
		expectValid(batch)
		Expect(batch.json().at("entry", 0, "resource")).NotTo(HaveKey("entry"))
	})

	It("the method that history tells of a patch", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		stored, err := s.store.Get(ctx, store.Key{Type: "Patient", ID: "a"})
		Expect(err).NotTo(HaveOccurred())
		body := stored.Body
		body.JSON = append(body.JSON[:len(body.JSON)-1:len(body.JSON)-1], `,"gender":"male"}`...)
		_, err = s.store.Write(ctx, []store.Op{{Kind: store.Put, Key: stored.Key, Method: store.MethodPatch, Body: body}})
		Expect(err).NotTo(HaveOccurred())
		Expect(methods(s.do("GET", "/patient/a/history", "").json())).To(Equal([]string{"PUT", "PUT"}))
		Expect(methods(s.do("GET", "/patient/a/history", "", acceptFHIR).json())).To(Equal([]string{"PATCH", "PUT"}))
	})

	It("_sort=date where there is no such parameter", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.put("/patient/b", luna)
		s.put("/patient/a", `{"resourceType":"Patient"}`)
		Expect(s.do("GET", "/patient?_sort=date", "").json().ids()).To(Equal([]string{"b", "a"}))
		Expect(s.do("GET", "/patient?_sort=-date", "").json().ids()).To(Equal([]string{"a", "b"}))
		refused := s.do("GET", "/patient?_sort=-date", "", acceptFHIR)
		Expect(refused.status).To(Equal(http.StatusBadRequest))
		Expect(refused.code()).To(Equal("invalid_query"))
	})

	It("the answer to a query that cannot be read", func(ctx context.Context) {
		s := newSite(ctx)
		for _, spoken := range []struct {
			option
			contentType string
		}{{acceptFHIR, fhir}, {with("Accept", "application/xml"), contract}} {
			refused := s.do("GET", "/patient?name=%zz", "", spoken.option)
			Expect(refused.status).To(Equal(http.StatusBadRequest))
			Expect(refused.code()).To(Equal("invalid_query"))
			Expect(refused.header.Get("Content-Type")).To(Equal(spoken.contentType))
		}
		By("a semicolon, which is part of a value")
		s.put("/patient/a", `{"resourceType":"Patient","name":[{"text":"Rex; Max"}]}`)
		Expect(s.do("GET", "/patient?name=rex;%20max&_format=application/fhir%2Bjson;fhirVersion=3.0", "").status).To(Equal(http.StatusNotAcceptable))
		Expect(s.do("GET", "/patient?name=rex;%20max&_format=application/fhir%2Bjson;fhirVersion=4.0", "").json().ids()).To(Equal([]string{"a"}))
		Expect(s.do("GET", "/patient?name=rex;%20max", "").json().ids()).To(Equal([]string{"a"}))
		Expect(s.do("POST", "/patient/_search", "name=rex;+max", with("Content-Type", "application/x-www-form-urlencoded")).json().ids()).To(Equal([]string{"a"}))
	})

	It("a PUT body without id", func(ctx context.Context) {
		s := newSite(ctx)
		Expect(s.do("PUT", "/patient/a", luna).json()).To(HaveKeyWithValue("id", "a"))
		refused := s.do("PUT", "/patient/b", luna, sendFHIR)
		Expect(refused.status).To(Equal(http.StatusBadRequest))
		Expect(refused.code()).To(Equal("invalid_id"))
		Expect(s.do("GET", "/patient/b", "").status).To(Equal(http.StatusNotFound))
		Expect(s.do("PUT", "/patient/b", `{"resourceType":"Patient","id":"b"}`, sendFHIR).status).To(Equal(http.StatusCreated))
	})

	It("Endpoint.status and Endpoint.address", func(ctx context.Context) {
		s := newSite(ctx)
		const least = `{"resourceType":"Endpoint","connectionType":{"code":"x"},"payloadType":[{"text":"any"}]`
		Expect(s.do("POST", "/endpoint", least+"}").status).To(Equal(http.StatusCreated))
		refused := s.do("POST", "/endpoint", least+"}", sendFHIR)
		Expect(refused.status).To(Equal(http.StatusBadRequest))
		Expect(refused.json().at("issue", 0, "expression", 0)).To(Equal("Endpoint.status"))
		Expect(refused.json().at("issue", 1, "expression", 0)).To(Equal("Endpoint.address"))
		full := s.do("POST", "/endpoint", least+`,"status":"active","address":"https://e.example"}`, sendFHIR)
		Expect(full.status).To(Equal(http.StatusCreated))
	})
})

// methods of the entries of a history.
func methods(history document) []string {
	var found []string
	for _, entry := range history.entries() {
		found = append(found, entry.at("request", "method").(string))
	}
	return found
}
