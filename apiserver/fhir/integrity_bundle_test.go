package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A bundle for a site that enforces references", func() {
	It("as a batch is judged entry by entry, in FHIR's order", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Patient/rex", ofPractice("Organization/oak"))
		a := s.do("POST", "", bundleOf("batch",
			asks("POST", "Patient", ofPractice("Organization/new")),
			asks("PUT", "Organization/new", practice),
			asks("PUT", "Patient/luna", ofPractice("Organization/new")),
			asks("DELETE", "Organization/oak", ""),
			asks("PUT", "Patient/rex", ofPractice("Organization/new")),
			asks("PATCH", "Patient/rex", binary(`[{"op":"replace","path":"/managingOrganization/reference","value":"Organization/none"}]`)),
		))
		Expect(statuses(a.json())).To(Equal([]string{"422 Unprocessable Entity", "201 Created", "201 Created", "409 Conflict", "200 OK", "422 Unprocessable Entity"}), a.body)
		expectValid(a)
		Expect(a.json().entries()[0].at("response", "outcome", "issue", 0, "expression", 0)).To(Equal("Patient.managingOrganization.reference"))
		Expect(a.json().entries()[3].at("response", "outcome", "issue", 0, "details", "coding", 0, "code")).To(Equal("still_referenced"))
		Expect(s.do("DELETE", "/Organization/oak", "").status).To(Equal(http.StatusOK))
	})

	It("as a transaction may refer to what it writes itself", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Patient/rex", tagged("1", ""))
		a := s.do("POST", "", bundleOf("transaction",
			named(uuid1, asks("POST", "Patient", `{"resourceType":"Patient","link":[{"other":{"reference":"`+uuid2+`"},"type":"seealso"}],"managingOrganization":{"reference":"Organization/oak"}}`)),
			named(uuid2, asks("POST", "RelatedPerson", relatedTo(uuid1, ""))),
			asks("PUT", "Organization/oak", `{"resourceType":"Organization","name":"Oak","partOf":{"reference":"Organization/oak"}}`),
			asks("POST", "RelatedPerson", relatedTo("Patient?identifier=urn:chip|1", "")),
		), with("X-Caller", "reads patients"))
		Expect(statuses(a.json())).To(HaveEach("201 Created"), a.body)
		entries := a.json().entries()
		patient, person := fmt.Sprint("Patient/", entries[0].at("resource", "id")), fmt.Sprint("RelatedPerson/", entries[1].at("resource", "id"))
		Expect(entries[1].at("resource", "patient", "reference")).To(Equal(patient))
		expectReferenced(s.do("DELETE", "/"+patient, ""), person)
		expectReferenced(s.do("DELETE", "/"+person, ""), patient)
		expectReferenced(s.do("DELETE", "/Patient/rex", ""), fmt.Sprint("RelatedPerson/", entries[3].at("resource", "id")))

		By("and may remove together what refers to each other")
		a = s.do("POST", "", bundleOf("transaction", asks("DELETE", patient, ""), asks("DELETE", person, "")))
		Expect(statuses(a.json())).To(HaveEach("200 OK"), a.body)
		Expect(s.do("GET", "/"+patient, "").status).To(Equal(http.StatusGone))
		Expect(s.do("DELETE", "/Organization/oak", "").status).To(Equal(http.StatusOK))
	})

	It("as a transaction that would leave a link to nothing is not written at all", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Patient/rex", ofPractice("Organization/oak"))
		for name, test := range map[string]struct {
			entries []string
			at      string
			status  int
		}{
			"a new link":                  {[]string{asks("PUT", "Patient/rex", tagged("1", "")), asks("POST", "Patient", ofPractice("Organization/elm"))}, "Bundle.entry[1].resource.managingOrganization.reference", 422},
			"in what is contained":        {[]string{asks("PUT", "Patient/rex", `{"resourceType":"Patient","contained":[{"resourceType":"Location","id":"l","managingOrganization":{"reference":"Organization/elm"}}],"extension":[{"url":"u","valueReference":{"reference":"#l"}}]}`)}, "Bundle.entry[0].resource.contained[0].managingOrganization.reference", 422},
			"to what it deletes":          {[]string{asks("PUT", "Patient/rex", tagged("1", "")), asks("DELETE", "Organization/oak", ""), asks("PUT", "Patient/luna", ofPractice("Organization/oak"))}, "Bundle.entry[2].resource.managingOrganization.reference", 422},
			"of a patch to what is gone":  {[]string{asks("PATCH", "Patient/rex", binary(`[{"op":"replace","path":"/managingOrganization/reference","value":"Organization/elm"}]`)), asks("POST", "Patient", tagged("2", ""))}, "Bundle.entry[0].resource.managingOrganization.reference", 422},
			"to another bundle's uuid":    {[]string{asks("POST", "Patient", ofPractice("Organization/61ebe359-bfdc-4613-8bf2-c5e300945f0a")), named(uuid1, asks("POST", "Organization", practice))}, "Bundle.entry[0].resource.managingOrganization.reference", 422},
			"a removal":                   {[]string{asks("POST", "Patient", tagged("1", "")), asks("DELETE", "Organization/oak", "")}, "Bundle.entry[1]", 409},
			"a removal, of what may stay": {[]string{asks("DELETE", "Organization/oak", ""), asks("PUT", "Patient/rex", `{"resourceType":"Patient","contact":[{"organization":{"reference":"https://h.example/fhir/Organization/oak"}}],"managingOrganization":{"reference":"`+s.base+`/Organization/oak"}}`)}, "Bundle.entry[1].resource.managingOrganization.reference", 422},
		} {
			a := s.do("POST", "", bundleOf("transaction", test.entries...))
			Expect(a.status).To(Equal(test.status), name+a.body)
			expectValid(a)
			Expect(a.json().at("issue", 0, "expression", 0)).To(Equal(test.at), name)
			Expect(s.do("GET", "?_type=Patient,Organization&_sort=_id", "").json().ids()).To(Equal([]string{"oak", "rex"}), name)
			Expect(s.do("GET", "/_history", "").json().at("total")).To(BeEquivalentTo(2), name)
		}
		By("though it is when the link goes with it")
		a := s.do("POST", "", bundleOf("transaction", asks("DELETE", "Organization/oak", ""), asks("PUT", "Patient/rex", tagged("1", ""))))
		Expect(statuses(a.json())).To(HaveEach("200 OK"), a.body)
	})

	It("leaves no link to nothing when 32 clients write at once", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		const clients, rounds, practices = 32, 12, 4
		name := func(n int) string { return fmt.Sprintf("Organization/o%d", n%practices) }
		for n := range practices {
			s.put("/"+name(n), practice)
		}
		var refused, written atomic.Int64
		var group sync.WaitGroup
		for client := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for round := range rounds {
					n := client*7 + round
					var a answer
					switch n % 4 {
					case 0:
						a = s.do("POST", "/Patient", ofPractice(name(n/4)))
					case 1:
						a = s.do("PUT", fmt.Sprintf("/Patient/p%d", n%8), `{"resourceType":"Patient","contact":[{"organization":{"reference":"`+name(n/4)+`"}}]}`)
					case 2:
						a = s.do("DELETE", "/"+name(n/4), "")
					default:
						// Every other one brings what it needs: else nothing could be written once all practices are gone.
						a = s.do("POST", "", bundleOf("transaction", asks("PUT", name(n/4), practice), asks("PUT", fmt.Sprintf("Patient/q%d", n%8), ofPractice(name(n/4+n/8%2)))))
					}
					switch a.status {
					case http.StatusOK, http.StatusCreated:
						written.Add(1)
					case http.StatusUnprocessableEntity, http.StatusConflict:
						refused.Add(1)
					default:
						Fail(a.body)
					}
				}
			})
		}
		group.Wait()
		Expect(written.Load()).To(BeNumerically(">", 0))
		Expect(refused.Load()).To(BeNumerically(">", 0))
		there := s.do("GET", "/Organization?_count=100", "").json().ids()
		patients := s.do("GET", "/Patient?_count=1000", "").json().entries()
		Expect(patients).NotTo(BeEmpty())
		for _, patient := range patients {
			reference := patient.at("resource", "managingOrganization", "reference")
			if reference == nil {
				reference = patient.at("resource", "contact", 0, "organization", "reference")
			}
			Expect(there).To(ContainElement(strings.TrimPrefix(reference.(string), "Organization/")))
		}
	})
})
