package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir"
)

// practice is an Organization, and ofPractice a Patient of one.
const practice = `{"resourceType":"Organization","name":"Oak"}`

func ofPractice(reference string) string {
	return `{"resourceType":"Patient","managingOrganization":{"reference":"` + reference + `"}}`
}

// identified is a resource with an id in it.
func identified(id, resource string) string { return `{"id":"` + id + `",` + resource[1:] }

// expectDangling expects an answer that names elements whose references lead nowhere.
func expectDangling(a answer, expressions ...string) {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusUnprocessableEntity), a.body)
	expectValid(a)
	issues := a.json()["issue"].([]any)
	Expect(issues).To(HaveLen(len(expressions)), a.body)
	for i, expression := range expressions {
		issue := document(issues[i].(map[string]any))
		Expect(issue.at("code")).To(Equal("not-found"))
		Expect(issue.at("details", "coding", 0, "code")).To(Equal("reference_not_found"))
		Expect(issue.at("expression", 0)).To(Equal(expression))
	}
}

// expectReferenced expects that a deletion is refused, and by which records.
func expectReferenced(a answer, by string) {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusConflict), a.body)
	expectValid(a)
	Expect(a.code()).To(Equal("still_referenced"))
	Expect(a.json().at("issue", 0, "code")).To(Equal("conflict"))
	Expect(a.json().at("issue", 0, "diagnostics")).To(HaveSuffix("is referenced by " + by + "; change or delete the referring records first"))
}

var _ = Describe("A site that enforces references", func() {
	DescribeTable("refuses what refers to nothing, in both dialects",
		func(ctx context.Context, method, path, body, expression string, options ...option) {
			s := newPostgresSite(ctx)
			s.put("/Organization/oak", practice)
			s.put("/Patient/rex", tagged("1", ""))
			for _, spoken := range []string{"application/json", "application/fhir+json"} {
				for _, path := range []string{path, strings.Replace(path, "Patient", "patient", 1)} {
					kind := spoken
					if method == "PATCH" {
						kind = "application/json-patch+json"
					}
					a := s.do(method, path, body, append(options, with("Accept", spoken), with("Content-Type", kind))...)
					expectDangling(a, expression)
					Expect(a.body).To(ContainSubstring(`\"Organization/elm\"`))
				}
			}
			Expect(s.do("GET", "/Patient?_elements=id", "").json().ids()).To(Equal([]string{"rex"}))
			Expect(s.do("GET", "/Patient/rex/_history", "").json().at("total")).To(BeEquivalentTo(1))
		},
		Entry("create", "POST", "/Patient", ofPractice("Organization/elm"), "Patient.managingOrganization.reference"),
		Entry("update", "PUT", "/Patient/rex", identified("rex", ofPractice("Organization/elm")), "Patient.managingOrganization.reference"),
		Entry("update that creates", "PUT", "/Patient/new", identified("new", ofPractice("Organization/elm")), "Patient.managingOrganization.reference"),
		Entry("patch", "PATCH", "/Patient/rex", `[{"op":"add","path":"/managingOrganization","value":{"reference":"Organization/elm"}}]`, "Patient.managingOrganization.reference"),
		Entry("conditional create", "POST", "/Patient", ofPractice("Organization/elm"), "Patient.managingOrganization.reference", with("If-None-Exist", "identifier=urn:chip|9")),
		Entry("conditional create that meets its criteria", "POST", "/Patient", `{"identifier":[{"system":"urn:chip","value":"9"}],`+ofPractice("Organization/elm")[1:], "Patient.managingOrganization.reference",
			with("If-None-Exist", "identifier=urn:chip|9")),
		Entry("conditional update", "PUT", "/Patient?identifier=urn:chip|1", ofPractice("Organization/elm"), "Patient.managingOrganization.reference"),
		Entry("conditional update that creates", "PUT", "/Patient?identifier=urn:chip|9", ofPractice("Organization/elm"), "Patient.managingOrganization.reference"),
		Entry("conditional patch", "PATCH", "/Patient?identifier=urn:chip|1", `[{"op":"add","path":"/managingOrganization","value":{"reference":"Organization/elm"}}]`, "Patient.managingOrganization.reference"),
		Entry("in an element that no search finds", "POST", "/Patient", `{"resourceType":"Patient","contact":[{"organization":{"reference":"Organization/oak"}},{"organization":{"reference":"Organization/elm"}}]}`,
			"Patient.contact[1].organization.reference"),
		Entry("in an extension", "POST", "/Patient", `{"resourceType":"Patient","birthDate":"2020","_birthDate":{"extension":[{"url":"urn:u","valueReference":{"reference":"Organization/elm"}}]}}`,
			"Patient.birthDate.extension[0].value.ofType(Reference).reference"),
		Entry("in what is contained", "POST", "/Patient", `{"resourceType":"Patient","contained":[{"resourceType":"Practitioner","id":"p","qualification":[{"code":{"text":"DVM"},"issuer":{"reference":"Organization/elm"}}]}],"generalPractitioner":[{"reference":"#p"}]}`,
			"Patient.contained[0].qualification[0].issuer.reference"),
	)

	It("names every element that refers to nothing", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		expectDangling(s.do("POST", "/Patient", `{"resourceType":"Patient","generalPractitioner":[{"reference":"Organization/oak"},{"reference":"Practitioner/ann/_history/2"}],"managingOrganization":{"reference":"`+s.base+`/organization/ELM"},"link":[{"other":{"reference":"`+s.base+`/Patient/a"},"type":"seealso"}]}`),
			"Patient.generalPractitioner[1].reference", "Patient.managingOrganization.reference", "Patient.link[0].other.reference")
		many := strings.Repeat(`,{"entity":{"reference":"Patient/1"}}`, 120)
		a := s.do("POST", "/Group", `{"resourceType":"Group","type":"animal","actual":true,"member":[`+many[1:]+`]}`)
		Expect(a.status).To(Equal(http.StatusUnprocessableEntity))
		Expect(a.json()["issue"]).To(HaveLen(50))
	})

	It("takes what refers to its records, in every form, and to what is not its own", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/Oak", practice)
		s.put("/PractitionerRole/vet", `{"resourceType":"PractitionerRole","organization":{"reference":"Organization/oak"}}`)
		for _, reference := range []string{
			"Organization/Oak", "Organization/oak", "Organization/oak/_history/1", "Organization/oak/_history/77", s.base + "/Organization/oak", s.base + "/organization/OAK",
			"https://elsewhere.example/fhir/Organization/elm", uuid1, "urn:oid:1.2.3", "https://elsewhere.example", s.base + "/metadata",
		} {
			a := s.do("POST", "/Patient", ofPractice(reference))
			Expect(a.status).To(Equal(http.StatusCreated), reference+a.body)
			Expect(s.do("DELETE", a.header.Get("Location")[:strings.LastIndex(a.header.Get("Location"), "/_history")], "").status).To(Equal(http.StatusOK))
		}
		for _, body := range []string{
			`{"resourceType":"Patient","generalPractitioner":[{"reference":"` + s.base + `/practitioner-role/vet"},{"identifier":{"system":"urn:i","value":"1"}},{"display":"the vet"}]}`,
			`{"resourceType":"Patient","contained":[{"resourceType":"Organization","id":"o","name":"O"}],"managingOrganization":{"reference":"#o"},"link":[{"other":{"reference":"#"},"type":"seealso"}]}`,
			`{"resourceType":"Patient","extension":[{"url":"urn:u","valueReference":{"reference":"Medication/1"}}]}`,
		} {
			Expect(s.do("POST", "/Patient", body).status).To(Equal(http.StatusCreated), body)
		}
		By("what refers to itself too")
		self := `{"resourceType":"Patient","link":[{"other":{"reference":"Patient/ME"},"type":"seealso"}]}`
		Expect(s.do("PUT", "/patient/me", self).status).To(Equal(http.StatusCreated))
		Expect(s.do("PUT", "/patient/me", self).status).To(Equal(http.StatusOK))
		Expect(s.do("DELETE", "/patient/me", "").status).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/patient/me", "").status).To(Equal(http.StatusGone))
	})

	It("keeps what is referred to, by whatever element", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Organization/elm", practice)
		for _, body := range []string{
			ofPractice("Organization/oak"),
			ofPractice("Organization/OAK/_history/1"),
			ofPractice(s.base + "/Organization/oak"),
			ofPractice(s.base + "/organization/oak/_history/1"),
			`{"resourceType":"Patient","contact":[{"organization":{"reference":"Organization/oak"}}]}`,
			`{"resourceType":"Patient","identifier":[{"value":"1","assigner":{"reference":"Organization/oak"}}]}`,
			`{"resourceType":"Patient","extension":[{"url":"urn:u","valueReference":{"reference":"Organization/oak"}}]}`,
			`{"resourceType":"Patient","contained":[{"resourceType":"Location","id":"l","managingOrganization":{"reference":"Organization/oak"}}],"extension":[{"url":"urn:u","valueReference":{"reference":"#l"}}]}`,
		} {
			s.put("/Patient/rex", body)
			for _, path := range []string{"/Organization/oak", "/organization/OAK", "/organization?_id=oak"} {
				expectReferenced(s.do("DELETE", path, ""), "Patient/rex")
				expectReferenced(s.do("DELETE", path, "", acceptFHIR), "Patient/rex")
			}
			Expect(s.do("GET", "/Organization/oak", "").status).To(Equal(http.StatusOK))
			s.put("/Patient/rex", ofPractice("Organization/elm"))
			Expect(s.do("DELETE", "/Organization/oak", "").status).To(Equal(http.StatusOK), body)
			Expect(s.do("DELETE", "/Organization/oak", "").status).To(Equal(http.StatusOK))
			Expect(s.do("GET", "/Organization/oak", "").status).To(Equal(http.StatusGone))
			expectDangling(s.do("PUT", "/Patient/rex", ofPractice("Organization/oak")), "Patient.managingOrganization.reference")
			s.put("/Organization/oak", practice)
		}
		Expect(s.do("DELETE", "/Organization/never", "").status).To(Equal(http.StatusOK))
		Expect(s.do("DELETE", "/Organization/oak", "", with("If-Match", `W/"1"`)).status).To(Equal(http.StatusPreconditionFailed))
		By("not by what is elsewhere, or contained itself, or deleted")
		s.put("/Patient/rex", ofPractice("https://elsewhere.example/fhir/Organization/oak"))
		Expect(s.do("DELETE", "/Organization/oak", "").status).To(Equal(http.StatusOK))
		s.put("/Patient/rex", ofPractice("Organization/elm"))
		Expect(s.do("DELETE", "/Patient/rex", "").status).To(Equal(http.StatusOK))
		Expect(s.do("DELETE", "/Organization/elm", "").status).To(Equal(http.StatusOK))
	})

	It("tells of the referring records that the caller may list, ten at most", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Patient/rex", ofPractice("Organization/oak"))
		s.put("/Organization/branch", `{"resourceType":"Organization","name":"Branch","partOf":{"reference":"Organization/oak"}}`)
		remove := func(caller string) answer { return s.do("DELETE", "/Organization/oak", "", with("X-Caller", caller)) }
		expectReferenced(remove(""), "Organization/branch, Patient/rex")
		expectReferenced(remove("lists patients"), "Patient/rex and other records")
		expectReferenced(remove("lists devices"), "other records")
		expectReferenced(remove("no-list"), "other records")
		for i := range 12 {
			s.put(fmt.Sprintf("/Organization/b%02d", i), `{"resourceType":"Organization","name":"Branch","partOf":{"reference":"Organization/oak"}}`)
		}
		a := remove("")
		Expect(a.body).To(ContainSubstring("Organization/b00, Organization/b01"))
		Expect(strings.Count(a.body, "Organization/b")).To(Equal(10))
		Expect(a.body).To(ContainSubstring(" and other records;"))
		s.do("DELETE", "/Patient/rex", "")
		Expect(remove("").body).To(ContainSubstring(" and other records;"))
		s.put("/Patient/rex", ofPractice("Organization/oak"))
		expectReferenced(remove("lists patients"), "Patient/rex and other records")
	})

	It("does not tell who may not read them which records there are", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Organization/elm", practice)
		s.put("/Patient/rex", ofPractice("Organization/oak"))
		blind := with("X-Caller", "reads patients")
		answers := map[string]int{}
		for _, id := range []string{"elm", "never"} {
			for _, request := range [][]string{
				{"POST", "/Patient", ofPractice("Organization/" + id)},
				{"PUT", "/Patient/rex", ofPractice("Organization/" + id)},
				{"PUT", "/Patient/new", ofPractice("Organization/" + id)},
			} {
				a := s.do(request[0], request[1], request[2], blind)
				expectDangling(a, "Patient.managingOrganization.reference")
				answers[strings.ReplaceAll(a.body, id, "{id}")]++
			}
		}
		Expect(answers).To(HaveLen(1), "the answers tell what is there")
		By("but what the record refers to already may stay")
		Expect(s.do("PUT", "/Patient/rex", identified("rex", ofPractice("Organization/oak")), blind).status).To(Equal(http.StatusOK))
		Expect(s.do("PATCH", "/Patient/rex", `[{"op":"add","path":"/active","value":true}]`, blind, with("Content-Type", "application/json-patch+json")).status).To(Equal(http.StatusOK))
		expectDangling(s.do("PUT", "/Patient/rex", ofPractice("Organization/oak"), with("X-Caller", "reads devices")), "Patient.managingOrganization.reference")
		By("however many they are")
		var vets []string
		for i := range 51 {
			s.put(fmt.Sprintf("/Practitioner/vet%d", i), `{"resourceType":"Practitioner"}`)
			vets = append(vets, fmt.Sprintf(`{"reference":"Practitioner/vet%d"}`, i))
		}
		s.put("/Practitioner/new", `{"resourceType":"Practitioner"}`)
		treated := func(by ...string) string {
			return `{"resourceType":"Patient","id":"luna","generalPractitioner":[` + strings.Join(append(by, vets...), ",") + `]}`
		}
		s.put("/Patient/luna", treated())
		Expect(s.do("PUT", "/Patient/luna", treated(`{"display":"a new one"}`), blind).status).To(Equal(http.StatusOK))
		for _, id := range []string{"new", "never"} {
			vets = append(vets, `{"reference":"Practitioner/`+id+`"}`)
			expectDangling(s.do("PUT", "/Patient/luna", treated(), blind), "Patient.generalPractitioner[51].reference")
			vets = vets[:51]
		}
		By("and who may list or get them may refer to them")
		for _, caller := range []string{"no-get", "no-list", "lists devices", "reads organizations"} {
			Expect(s.do("POST", "/Patient", ofPractice("Organization/elm"), with("X-Caller", caller)).status).To(Equal(http.StatusCreated), caller)
		}
	})

	It("shows no stored references to a patch by a caller who may not get the record", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		s.put("/Organization/oak", practice)
		s.put("/Practitioner/ann", `{"resourceType":"Practitioner"}`)
		s.put("/Patient/rex", `{"resourceType":"Patient","generalPractitioner":[{"reference":"Practitioner/ann"}]}`)
		const patch = `[{"op":"add","path":"/language","value":"en"}]`
		blind, entry := with("X-Caller", "reads organizations"), asks("PATCH", "Patient/rex", binary(patch))
		for name, refused := range map[string]answer{
			"alone":            s.do("PATCH", "/Patient/rex", patch, sendPatch, blind),
			"in a transaction": s.do("POST", "", bundleOf("transaction", entry, asks("DELETE", "Patient/never", "")), blind),
		} {
			Expect(refused.status).To(Equal(http.StatusForbidden), name)
			Expect(refused.body).NotTo(ContainSubstring("ann"), name)
		}
		batch := s.do("POST", "", bundleOf("batch", entry), blind)
		Expect(batch.json().at("entry", 0, "response", "status")).To(Equal("403 Forbidden"))
		Expect(batch.body).NotTo(ContainSubstring("ann"))
		By("and shows the reference of the patch to a caller who may get the record")
		elm := `[{"op":"add","path":"/managingOrganization","value":{"reference":"Organization/elm"}}]`
		expectDangling(s.do("PATCH", "/Patient/rex", elm, sendPatch, with("X-Caller", "reads patients")), "Patient.managingOrganization.reference")
	})

	It("answers the same whether a record that privacy rules hide exists", func(ctx context.Context) {
		s := newPostgresSite(ctx, func(site *fhir.Endpoint) {
			site.Store = gatetest.Open(site.Store, &privacy.View{
				Rules: &privacy.Rules{}, Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, nil }, Reads: gatetest.Reads,
			})
		})
		s.put("/Patient/luna", `{"resourceType":"Patient","meta":{"security":[{"code":"R"}]}}`)
		s.put("/Patient/rex", `{"resourceType":"Patient"}`)
		answers := map[string]int{}
		for _, id := range []string{"luna", "never"} {
			linked := `{"resourceType":"Patient","id":"rex","link":[{"other":{"reference":"Patient/` + id + `"},"type":"seealso"}]`
			for _, a := range []answer{
				s.do("PUT", "/Patient/rex", linked+"}"),
				s.do("PUT", "/Patient/rex", linked+"}", with("If-Match", `W/"9"`)),
				s.do("PUT", "/Patient/rex", linked+`,"managingOrganization":{"reference":"Organization/elm"}}`),
				s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/mia", ofPractice("Organization/elm")), asks("PUT", "Patient/rex", linked+"}"))),
			} {
				answers[strings.ReplaceAll(a.body, id, "{id}")]++
			}
		}
		Expect(answers).To(HaveLen(4))
		Expect(answers).To(HaveEach(2))
		By("also for a reference that the record has already")
		s.put("/Patient/mia", `{"resourceType":"Patient"}`)
		linked := `{"resourceType":"Patient","id":"rex","link":[{"other":{"reference":"Patient/mia"},"type":"seealso"}]}`
		s.put("/Patient/rex", linked)
		s.put("/Patient/mia", `{"resourceType":"Patient","meta":{"security":[{"code":"R"}]}}`)
		expectDangling(s.do("PUT", "/Patient/rex", linked), "Patient.link[0].other.reference")
	})

	It("says so in its metadata", func(ctx context.Context) {
		a := newPostgresSite(ctx).do("GET", "/metadata", "")
		expectValid(a)
		for _, resource := range a.json().at("rest", 0, "resource").([]any) {
			if resource.(map[string]any)["type"] != "AuditEvent" { // nobody writes these
				Expect(resource).To(HaveKeyWithValue("referencePolicy", []any{"enforced"}))
			}
		}
		lax := newPostgresSite(ctx, func(s *fhir.Endpoint) { s.EnforceReferences = false })
		Expect(lax.do("GET", "/metadata", "").body).NotTo(ContainSubstring("referencePolicy"))
		Expect(lax.do("PUT", "/Patient/rex", ofPractice("Organization/elm")).status).To(Equal(http.StatusCreated))
		lax.put("/Organization/elm", practice)
		Expect(lax.do("DELETE", "/Organization/elm", "").status).To(Equal(http.StatusOK))
	})
})
