package fhir_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

var _ = Describe("Everything of a patient", func() {
	for engine, open := range newSites {
		Describe("in "+engine, Ordered, ContinueOnFailure, func() {
			var s searching
			BeforeAll(func(ctx context.Context) {
				s = newHousehold(open(ctx, func(site *fhir.Endpoint) { site.EnforceReferences = false }))
				s.put("/Device/Chip", `{"resourceType":"Device","id":"Chip","patient":{"reference":"Patient/rex"},"location":{"reference":"Location/ward"}}`)
				s.put("/Location/ward", `{"resourceType":"Location","id":"ward","name":"Ward"}`)
				s.put("/Location/other", `{"resourceType":"Location","id":"other","name":"Other"}`)
			})
			found := func(path string, options ...option) string {
				GinkgoHelper()
				a := s.do("GET", path, "", options...)
				Expect(a.status).To(Equal(http.StatusOK), path+": "+a.body)
				modes := ofMode(a.json(), "match")
				slices.Sort(modes)
				return strings.Join(modes, " ")
			}

			It("is the patient, the compartment, and what these refer to", func() {
				for path, want := range map[string]string{
					"/Patient/rex/$everything":                                         "Device/Chip Group/herd Location/ward Organization/org Patient/Rex Patient/luna Person/ann Practitioner/vet RelatedPerson/owner",
					"/patient/REX/%24everything":                                       "Device/Chip Group/herd Location/ward Organization/org Patient/Rex Patient/luna Person/ann Practitioner/vet RelatedPerson/owner",
					"/Patient/luna/$everything":                                        "Group/flock Patient/Rex Patient/luna RelatedPerson/owner",
					"/Patient/self/$everything":                                        "Patient/self",
					"/Patient/rex/$everything?_type=Practitioner":                      "Practitioner/vet",
					"/Patient/rex/$everything?_type=location,Person":                   "Location/ward Person/ann",
					"/Patient/rex/$everything?_type=Group&_type=Organization,Endpoint": "Group/herd Organization/org",
					"/Patient/rex/$everything?_type=Endpoint":                          "",
				} {
					Expect(found(path)).To(Equal(want), path)
				}
				a := s.do("GET", "/Patient/rex/$everything", "", acceptFHIR)
				expectValid(a)
				Expect(a.json()).To(And(HaveKeyWithValue("type", "searchset"), HaveKeyWithValue("total", BeEquivalentTo(9))))
				Expect(s.do("HEAD", "/Patient/rex/$everything", "").body).To(BeEmpty())
			})

			It("has pages, whose links and tokens are those of the patient and the query", func() {
				var walked []string
				next := s.base + "/Patient/rex/$everything?_count=2"
				for next != "" {
					a := s.do("GET", next, "")
					Expect(a.status).To(Equal(http.StatusOK), a.body)
					Expect(len(a.json().ids())).To(BeNumerically("<=", 2))
					Expect(a.json().link("first")).To(Equal(s.base + "/Patient/rex/$everything?_count=2"))
					walked = append(walked, a.json().ids()...)
					next = a.json().link("next")
				}
				Expect(walked).To(Equal([]string{"Chip", "herd", "org", "Rex", "luna", "ann", "vet", "owner", "ward"}), "by creation")
				token := url.QueryEscape(tokenIn(s.do("GET", "/Patient/rex/$everything?_count=2", "").json().link("next")))
				for path, status := range map[string]int{
					"/patient/REX/%24everything?_count=2": 200, "/Patient/luna/$everything?_count=2": 400, "/Patient/rex/$everything?_count=3": 400,
					"/Patient/rex/$everything?_count=2&_type=Person": 400, "/Patient/rex/*?_count=2": 400, "/?_count=2": 400,
				} {
					Expect(s.do("GET", path+"&_page_token="+token, "").status).To(Equal(status), path)
				}
			})

			It("has a record created while its pages are read", func() {
				first := s.do("GET", "/Patient/rex/$everything?_count=8", "").json()
				s.put("/Person/late", `{"resourceType":"Person","id":"late","link":[{"target":{"reference":"Patient/rex"}}]}`)
				Expect(s.do("GET", first.link("next"), "").json().ids()).To(Equal([]string{"ward", "late"}))
				s.do("DELETE", "/Person/late", "")
				Expect(found("/Patient/rex/$everything")).NotTo(ContainSubstring("Person/late"))
			})

			It("has with _since what was updated since then", func() {
				since := func(updated time.Time) string {
					return "/Patient/rex/$everything?_since=" + url.QueryEscape(updated.Format(time.RFC3339Nano))
				}
				nextMillisecond()
				a := s.do("PUT", "/Practitioner/vet", `{"resourceType":"Practitioner","id":"vet","active":false}`, sendFHIR)
				Expect(a.status).To(Equal(http.StatusOK), a.body)
				updated, err := time.Parse(time.RFC3339Nano, a.json().at("meta", "lastUpdated").(string))
				Expect(err).NotTo(HaveOccurred())
				// A write in progress holds the result back, for a moment.
				Eventually(func() string { return found(since(updated)) }).Should(Equal("Practitioner/vet"))
				Expect(found(since(updated.Add(time.Millisecond)))).To(BeEmpty())
				Expect(found(since(updated) + "&_type=Person")).To(BeEmpty())
				Eventually(func() string { return found("/Patient/rex/$everything?_since=2020") }).Should(Equal(found("/Patient/rex/$everything")))
			})

			It("answers as other searches do to what it does not know", func() {
				for query, parameter := range map[string]string{
					"start=2026": "start", "end=2026": "end", "name=x": "name", "_include=*": "_include", "_sort=_id": "_sort", "_type=Observation": "_type", "_type=": "",
					"_count=x": "_count", "_since=never": "_since", "_page_token=x": "_page_token",
				} {
					a := s.do("GET", "/Patient/rex/$everything?"+query, "")
					if parameter == "" {
						Expect(a.status).To(Equal(http.StatusOK), query)
						continue
					}
					Expect(a.status).To(Equal(http.StatusBadRequest), query)
					Expect(a.code()).To(Equal("invalid_query"), query)
					Expect(a.json().at("issue", 0, "diagnostics")).To(ContainSubstring(`"`+parameter+`"`), query)
				}
				lenient := s.do("GET", "/Patient/rex/$everything?start=2026&_type=Location", "", with("Prefer", "handling=lenient")).json()
				Expect(lenient.at("entry", 1, "search", "mode")).To(Equal("outcome"))
				Expect(s.do("GET", "/Patient/rex/$everything?_summary=count", "").json()).To(And(HaveKeyWithValue("total", BeEquivalentTo(9)), Not(HaveKey("entry"))))
			})

			It("does not exist for a patient that does not exist, or for another type", func() {
				s.put("/Patient/gone", `{"resourceType":"Patient","id":"gone"}`)
				s.do("DELETE", "/Patient/gone", "")
				type refusal struct {
					status int
					code   string
				}
				unknown := refusal{http.StatusNotFound, "unknown_operation"}
				for path, want := range map[string]refusal{
					"/Patient/nobody/$everything":   {http.StatusNotFound, "resource_not_found"},
					"/Patient/gone/$everything":     {http.StatusGone, s.do("GET", "/Patient/gone", "").code()},
					"/Practitioner/vet/$everything": unknown, "/Organization/org/$everything": unknown, "/Group/herd/$everything": unknown, "/Patient/$everything": unknown,
				} {
					a := s.do("GET", path, "")
					Expect(refusal{a.status, a.code()}).To(Equal(want), path)
				}
			})

			It("takes its parameters from a Parameters resource, as many clients send them", func() {
				sent := func(list string, options ...option) answer {
					return s.do("POST", "/Patient/rex/$everything", parameters(list), append(options, sendFHIR, acceptFHIR)...)
				}
				all := s.do("GET", "/Patient/rex/$everything", "", acceptFHIR).json().ids()
				Expect(sent("").json().ids()).To(Equal(all))
				Expect(s.do("POST", "/Patient/rex/$everything", "").json().ids()).To(Equal(all), "without a body")
				Expect(s.do("POST", "/Patient/rex/$everything", `{"resourceType":"Parameters"}`).json().ids()).To(Equal(all))
				page := sent(`{"name":"_type","valueCode":"Group"},{"name":"_type","valueCode":"Organization"},{"name":"_count","valueInteger":1},{"name":"_since","valueInstant":"2020-01-01T00:00:00Z"}`).json()
				Expect(page.ids()).To(Equal([]string{"herd"}))
				Expect(s.do("GET", page.link("next"), "").json().ids()).To(Equal([]string{"org"}))
				Expect(s.do("POST", "/Patient/rex/$everything?_type=Group", parameters(`{"name":"_type","valueCode":"Organization"}`)).json().ids()).To(Equal([]string{"herd", "org"}))
				for list, code := range map[string]string{
					`{"name":"start","valueDate":"2026-01-01"}`: "invalid_query", `{"name":"_count","valueString":"x"}`: "invalid_query", `{"valueInteger":1}`: "invalid_query",
					`{"name":"_count","valueInteger":1,"part":[{"name":"a"}]}`: "invalid_parameters", `{"name":"_count","valueInteger":1,"resource":{"resourceType":"Patient"}}`: "invalid_parameters",
					`{"name":"_count"}`: "invalid_parameters", `{"name":"_count","valueInteger":1,"valueString":"1"}`: "invalid_parameters", `{"name":"_type","valueCoding":{"code":"Group"}}`: "invalid_parameters", `7`: "invalid_parameters",
				} {
					a := sent(list)
					Expect(a.status).To(Equal(http.StatusBadRequest), list)
					Expect(a.code()).To(Equal(code), list)
				}
				for _, body := range []string{`{"resourceType":"Patient"}`, `{"resourceType":"Parameters","parameter":{}}`, `{`, `[]`} {
					a := s.do("POST", "/Patient/rex/$everything", body, sendFHIR)
					Expect(a.status).To(Equal(http.StatusBadRequest), body)
					Expect(a.code()).To(Equal("invalid_parameters"), body)
				}
				Expect(s.do("POST", "/Patient/rex/$everything", "start=2026", with("Content-Type", "application/x-www-form-urlencoded")).status).To(Equal(http.StatusUnsupportedMediaType))
				Expect(s.do("POST", "/Patient/nobody/$everything", parameters("")).code()).To(Equal("resource_not_found"))
				Expect(sent("", with("X-Caller", "no-list")).code()).To(Equal("permission_denied"))
			})

			It("is answered in bundles", func() {
				sent := []string{asks("GET", "Patient/rex/$everything?_type=Person", ""), asks("GET", "Patient/nobody/$everything", "")}
				answered := s.do("POST", "", bundleOf("batch", sent...), sendFHIR, acceptFHIR).json()
				Expect(statuses(answered)).To(Equal([]string{"200 OK", "404 Not Found"}))
				Expect(document(answered.at("entry", 0, "resource").(map[string]any)).ids()).To(Equal([]string{"ann"}))
				byPost := asks("POST", "Patient/rex/$everything", parameters(`{"name":"_type","valueCode":"Person"}`))
				answered = s.do("POST", "", bundleOf("batch", byPost), sendFHIR, acceptFHIR).json()
				Expect(document(answered.at("entry", 0, "resource").(map[string]any)).ids()).To(Equal([]string{"ann"}))
			})

			It("shows what the caller may list, and follows no references of other records", func() {
				as := func(caller string) option { return with("X-Caller", caller) }
				Expect(found("/Patient/rex/$everything", as("lists patients groups practitioners organizations"))).To(Equal("Group/herd Organization/org Patient/Rex Patient/luna Practitioner/vet"))
				Expect(found("/Patient/rex/$everything", as("lists patients locations"))).To(Equal("Patient/Rex Patient/luna"), "only a Device leads to the ward")
				Expect(found("/Patient/rex/$everything?_type=Location", as("lists patients locations"))).To(BeEmpty())
				Expect(found("/Patient/rex/$everything?_type=Location", as("lists patients devices locations"))).To(Equal("Location/ward"))
				Expect(found("/Patient/rex/$everything", as("lists patients devices locations"))).To(Equal("Device/Chip Location/ward Patient/Rex Patient/luna"))
				for path, caller := range map[string]string{
					"/Patient/rex/$everything": "lists groups", "/Patient/rex/$everything?_type=Group": "lists patients", "/Patient/nobody/$everything": "no-list",
				} {
					a := s.do("GET", path, "", as(caller))
					Expect(a.status).To(Equal(http.StatusForbidden), path)
					Expect(a.code()).To(Equal("permission_denied"))
				}
			})
		})
	}
})
