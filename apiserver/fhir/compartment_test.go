package fhir_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// household are records that are in compartments, by path; in the order of their paths none
// refers to one that comes later.
var household = map[string]string{
	"Device/Chip":              `"status":"active","patient":{"reference":"Patient/Rex"}`,
	"Group/herd":               `"type":"animal","actual":true,"name":"Herd","member":[{"entity":{"reference":"Patient/Rex"}},{"entity":{"reference":"Practitioner/vet"}},{"entity":{"reference":"Device/chip"}}]`,
	"Group/flock":              `"type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/luna"}}]`,
	"Organization/org":         `"name":"Clinic"`,
	"Patient/Rex":              `"name":[{"family":"Smith"}],"gender":"male","generalPractitioner":[{"reference":"Practitioner/vet"}],"managingOrganization":{"reference":"Organization/org"}`,
	"Patient/luna":             `"name":[{"family":"Smith"}],"gender":"female","link":[{"other":{"reference":"Patient/rex/_history/1"},"type":"seealso"},{"other":{"reference":"RelatedPerson/owner"},"type":"seealso"}]`,
	"Patient/self":             `"link":[{"other":{"reference":"Patient/self"},"type":"seealso"}]`,
	"Person/ann":               `"name":[{"family":"Ann"}],"gender":"female","link":[{"target":{"reference":"Patient/REX"}},{"target":{"reference":"Practitioner/vet"}},{"target":{"reference":"RelatedPerson/owner"}}]`,
	"Person/bob":               `"link":[{"target":{"reference":"https://elsewhere.example/fhir/Patient/rex"}}]`,
	"Practitioner/vet":         `"active":true`,
	"PractitionerRole/surgeon": `"practitioner":{"reference":"Practitioner/vet"}`,
	"RelatedPerson/owner":      `"patient":{"reference":"Patient/Rex"},"gender":"female"`,
}

func newHousehold(s site) searching {
	GinkgoHelper()
	for _, path := range slices.Sorted(maps.Keys(household)) {
		typeName, id, _ := strings.Cut(path, "/")
		a := s.do("PUT", "/"+path, `{"resourceType":"`+typeName+`","id":"`+id+`",`+household[path]+`}`, sendFHIR)
		Expect(a.status).To(Equal(http.StatusCreated), path+": "+a.body)
	}
	return searching{s}
}

// definedCompartments are HL7's definitions, by canonical URL.
var definedCompartments = sync.OnceValue(func() map[string]compartmentDefinition {
	defined := map[string]compartmentDefinition{}
	path, err := examples.Fetch(context.Background(), filepath.Join("..", "..", "bin"))
	Expect(err).NotTo(HaveOccurred())
	Expect(examples.Walk(path, func(name string, text []byte) error {
		if !strings.HasPrefix(name, "CompartmentDefinition-") {
			return nil
		}
		var d compartmentDefinition
		err := json.Unmarshal(text, &d)
		defined[d.URL] = d
		return err
	})).To(Succeed())
	return defined
})

type compartmentDefinition struct {
	URL, Code string
	Resource  []struct {
		Code  string
		Param []string
	}
}

// proveCompartments expects searches in the compartments claimed to be of the types that HL7
// puts there, and those in the compartments of other types to be refused.
func proveCompartments(s site, claimed []any) {
	GinkgoHelper()
	status := map[string]int{}
	for _, of := range r4.Types {
		for _, members := range r4.Types {
			status[of.Name+"/1/"+members.Name] = http.StatusBadRequest
		}
	}
	for _, url := range claimed {
		Expect(definedCompartments()).To(HaveKey(url))
		definition := definedCompartments()[url.(string)]
		for _, resource := range definition.Resource {
			path := definition.Code + "/1/" + resource.Code
			if _, kept := status[path]; kept && len(resource.Param) > 0 {
				status[path] = http.StatusOK
			}
		}
		Expect(s.do("GET", "/"+definition.Code+"/1/*", "").status).To(Equal(http.StatusOK))
	}
	status["Patient/1/Device"] = http.StatusOK // by name, though R4 has no Device there
	for path, want := range status {
		Expect(s.do("GET", "/"+path, "").status).To(Equal(want), path)
	}
}

var _ = Describe("Compartments", func() {
	for engine, open := range newSites {
		Describe("in "+engine, Ordered, ContinueOnFailure, func() {
			var s searching
			BeforeAll(func(ctx context.Context) {
				s = newHousehold(open(ctx, func(site *fhir.Endpoint) { site.EnforceReferences = false }))
			})

			It("have the records that R4 puts there", func() {
				members := map[string]string{
					"Patient/Rex/Group": "herd", "Patient/rex/Patient": "luna", "Patient/Rex/Person": "ann", "Patient/REX/RelatedPerson": "owner",
					"Patient/Rex/*": "ann herd luna owner", "patient/rex/related-person": "owner", "patient/Rex/*": "ann herd luna owner", "Patient/rex/Person/": "ann", "Patient/rex/%2A": "ann herd luna owner",
					"Patient/luna/*": "flock", "Patient/self/Patient": "self", "Patient/luna/Patient": "",
					"Practitioner/vet/*": "Rex ann herd surgeon vet", "Practitioner/vet/Patient": "Rex", "Practitioner/vet/Practitioner": "vet", "practitioner/vet/practitioner-role": "surgeon",
					"RelatedPerson/owner/*": "ann luna owner", "related-person/owner/related-person": "owner", "Device/chip/Group": "herd", "Device/chip/*": "herd",
					// None of these records exists: an answer says nothing of them.
					"Patient/nobody/Group": "", "Patient/nobody/*": "", "Practitioner/nobody/Practitioner": "", "Practitioner/nobody/*": "", "Patient/history/Group": "",
				}
				for _, dialect := range []string{"application/json", "application/fhir+json"} {
					found := map[string]string{}
					for path, want := range members {
						a := s.do("GET", "/"+path, "", with("Accept", dialect))
						Expect(a.status).To(Equal(http.StatusOK), path+": "+a.body)
						ids := a.json().ids()
						slices.Sort(ids)
						found[path] = strings.Join(ids, " ")
						Expect(a.json()).To(HaveKeyWithValue("total", BeEquivalentTo(len(strings.Fields(want)))), path)
						Expect(a.header.Get("Content-Type")).To(HavePrefix(dialect))
					}
					Expect(found).To(Equal(members))
				}
			})

			It("take all that a search takes", func() {
				s.finds(map[string]string{
					"Patient/rex/Person?gender=female": "ann", "Patient/rex/Person?gender=male": "", "Patient/rex/*?_id=ann,owner": "ann owner", "Patient/rex/*?_type=person,Group": "ann herd",
					"Patient/rex/Group?member=Patient/luna": "", "Patient/rex/Group?member=Practitioner/vet": "herd", "Patient/rex/Person?link:RelatedPerson.gender=female": "ann",
					"Practitioner/vet/Patient?_has:Device:patient:status=active": "Rex", "Practitioner/vet/Patient?organization.name=clinic": "Rex", "Practitioner/vet/Patient?organization.name=other": "",
					"Patient/rex/Group?code:missing=true": "herd", "Patient/rex/Group?_id:not=herd": "", "Practitioner/vet/*?_lastUpdated=ge2020&_type=Practitioner": "vet", "Patient/rex/*?patient=Patient/rex": "ann herd luna owner",
				})
				included := s.ask("Patient/rex/Person?_include=Person:practitioner&_revinclude=PractitionerRole:practitioner&_include:iterate=*")
				expectValid(included)
				Expect(ofMode(included.json(), "match")).To(Equal([]string{"Person/ann"}))
				Expect(ofMode(included.json(), "include")).To(ContainElements("Practitioner/vet", "Patient/Rex", "RelatedPerson/owner"))
				Expect(inOrder(s.ask("Practitioner/vet/*?_sort=-_id").json())).To(Equal([]string{"vet", "surgeon", "Rex", "herd", "ann"}))
				Expect(inOrder(s.ask("Patient/rex/*?_sort=_lastUpdated").json())).To(Equal([]string{"herd", "luna", "ann", "owner"}))
				Expect(s.ask("Patient/rex/*?_summary=count").json()).To(And(HaveKeyWithValue("total", BeEquivalentTo(4)), Not(HaveKey("entry"))))
				Expect(s.ask("Patient/rex/*?_count=1&_total=none").json()).NotTo(HaveKey("total"))
				Expect(s.ask("Patient/rex/Group?_elements=actual").json().at("entry", 0, "resource")).To(And(HaveKey("actual"), Not(HaveKey("name"))))
				Expect(s.ask("Patient/rex/Person?nme=x", with("Prefer", "handling=lenient")).json().at("entry", 1, "search", "mode")).To(Equal("outcome"))
				s.refuses("Patient/rex/Person?nme=x", "Patient/rex/*?gender=male", "Patient/rex/*?_type=Location", "Patient/rex/Person?_type=Person", "Patient/rex/Person?_sort=gender", "Patient/rex/Person?_sort:x=1")
				head := s.do("HEAD", "/Patient/rex/Person", "")
				Expect(head.status).To(Equal(http.StatusOK))
				Expect(head.body).To(BeEmpty())
			})

			It("link to their own address, in its spelling, and bind their tokens to it", func() {
				for path, fullURL := range map[string]string{"Patient/rex/*": "/Person/ann", "patient/Rex/*": "/person/ann", "Patient/rex/person": "/person/ann", "patient/rex/Person/": "/Person/ann"} {
					first := s.do("GET", "/"+path+"?_id=ann", "").json()
					Expect(first.at("entry", 0, "fullUrl")).To(Equal(s.base+fullURL), path)
					for _, relation := range []string{"self", "first", "search"} {
						Expect(first.link(relation)).To(Equal(s.base+"/"+strings.TrimSuffix(path, "/")+"?_id=ann"), path)
					}
				}
				next := s.do("GET", "/practitioner/vet/*?_count=2&_sort=_id", "").json()
				var walked []string
				for ; ; next = s.do("GET", next.link("next"), "").json() {
					Expect(next.link("first")).To(Equal(s.base + "/practitioner/vet/*?_count=2&_sort=_id"))
					walked = append(walked, next.ids()...)
					if next.link("next") == "" {
						break
					}
				}
				Expect(walked).To(Equal([]string{"ann", "herd", "Rex", "surgeon", "vet"}))

				token := tokenIn(s.do("GET", "/Practitioner/vet/*?_count=1", "").json().link("next"))
				for path, status := range map[string]int{
					"Practitioner/vet/*": 200, "practitioner/VET/*": 200, "Practitioner/other/*": 400, "Patient/vet/*": 400, "Practitioner/vet/Group": 400, "": 400,
				} {
					a := s.do("GET", "/"+path+"?_count=1&_page_token="+url.QueryEscape(token), "")
					Expect(a.status).To(Equal(status), path+": "+a.body)
				}
			})

			It("are searched by POST and in bundles", func() {
				form := with("Content-Type", "application/x-www-form-urlencoded")
				for path, self := range map[string]string{
					"/Patient/rex/Person/_search": "/Patient/rex/Person?_id=ann", "/patient/rex/*/_search": "/patient/rex/*?_id=ann", "/Patient/rex/_search": "/Patient/rex/*?_id=ann",
				} {
					a := s.do("POST", path, "_id=ann", form)
					Expect(a.status).To(Equal(http.StatusOK), a.body)
					Expect(a.json().ids()).To(Equal([]string{"ann"}), path)
					Expect(a.json().link("self")).To(Equal(s.base + self))
				}
				entries := []string{asks("GET", "Patient/rex/Group", ""), asks("GET", "patient/rex/*?_type=person", ""), asks("HEAD", "Patient/rex/Person", ""), asks("GET", "Patient/rex/Location", ""), asks("GET", "Patient/nobody/*", "")}
				for _, kind := range []string{"batch", "transaction"} {
					sent := entries
					if kind == "transaction" {
						sent = slices.Delete(slices.Clone(entries), 3, 4)
					}
					answered := s.do("POST", "", bundleOf(kind, sent...), sendFHIR, acceptFHIR).json()
					Expect(statuses(answered)[:3]).To(Equal([]string{"200 OK", "200 OK", "200 OK"}), kind)
					Expect(document(answered.at("entry", 0, "resource").(map[string]any)).ids()).To(Equal([]string{"herd"}))
					Expect(document(answered.at("entry", 1, "resource").(map[string]any)).ids()).To(Equal([]string{"ann"}))
					last := answered.at("entry", len(sent)-1, "resource").(map[string]any)
					Expect(last).To(HaveKeyWithValue("total", BeEquivalentTo(0)))
				}
				Expect(statuses(s.do("POST", "", bundleOf("batch", entries...), sendFHIR, acceptFHIR).json())[3]).To(Equal("400 Bad Request"))
			})

			It("follow updates and deletions", func() {
				s.put("/Group/moving", `{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"Device/moved"}}]}`)
				Expect(s.do("GET", "/Device/moved/Group", "").json().ids()).To(Equal([]string{"moving"}))
				s.put("/Group/moving", `{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"Device/other"}}]}`)
				Expect(s.do("GET", "/Device/moved/Group", "").json().ids()).To(BeEmpty())
				Expect(s.do("GET", "/Device/other/*", "").json().ids()).To(Equal([]string{"moving"}))
				s.do("DELETE", "/Group/moving", "")
				Expect(s.do("GET", "/Device/other/*", "").json().ids()).To(BeEmpty())
			})

			It("show what the caller may list", func() {
				ids := func(path, caller string) []string {
					GinkgoHelper()
					a := s.do("GET", path, "", with("X-Caller", caller))
					Expect(a.status).To(Equal(http.StatusOK), a.body)
					found := a.json().ids()
					slices.Sort(found)
					return found
				}
				Expect(ids("/Patient/rex/Group", "lists groups")).To(Equal([]string{"herd"}), "no right to the patient is needed")
				Expect(ids("/Patient/rex/*", "lists groups persons")).To(Equal([]string{"ann", "herd"}))
				Expect(ids("/Patient/rex/*?_type=Group,Patient", "lists groups persons")).To(Equal([]string{"herd"}))
				for path, caller := range map[string]string{
					"/Patient/rex/Group": "lists patients", "/Patient/rex/*": "lists devices", "/Patient/rex/*?_type=Group": "lists persons", "/Patient/nobody/*": "lists devices", "/Practitioner/vet/*": "no-list",
				} {
					a := s.do("GET", path, "", with("X-Caller", caller))
					Expect(a.status).To(Equal(http.StatusForbidden), path)
					Expect(a.code()).To(Equal("permission_denied"))
				}
			})
		})
	}

	It("are those of R4, and say what is not in them", func(ctx context.Context) {
		s := newSite(ctx)
		for path, said := range map[string]string{
			"/Patient/rex/Practitioner":     "Practitioner records are not in the compartment of a Patient; FHIR R4 puts Group, Patient, Person and RelatedPerson there",
			"/patient/Rex/location":         "Location records are not in the compartment of a Patient; FHIR R4 puts Group, Patient, Person and RelatedPerson there",
			"/Device/1/Device/":             "Device records are not in the compartment of a Device; FHIR R4 puts Group there",
			"/Organization/1/Patient":       "Organization records have no compartment; search in one of a type for which FHIR R4 defines compartments: Device, Patient, Practitioner and RelatedPerson",
			"/organization/1/*":             "Organization records have no compartment; ",
			"/Practitioner/1/RelatedPerson": "RelatedPerson records are not in the compartment of a Practitioner",
		} {
			a := s.do("GET", path, "")
			Expect(a.status).To(Equal(http.StatusBadRequest), path)
			Expect(a.code()).To(Equal("not_in_compartment"))
			Expect(a.json().at("issue", 0, "diagnostics")).To(HavePrefix(said), path)
			Expect(a.json().at("issue", 0, "code")).To(Equal("not-supported"))
		}
		for _, path := range []string{"/device-metric/1/device", "/patient/1/practitioner-role"} {
			Expect(s.do("GET", path, "").status).To(Equal(http.StatusBadRequest), path)
		}
	})

	It("leave the other paths behind an id alone", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/Patient/rex", luna)
		for path, kind := range map[string]string{"/Patient/rex/_history": "history", "/patient/rex/history": "history"} {
			Expect(s.do("GET", path, "").json()).To(HaveKeyWithValue("type", kind), path)
		}
		Expect(s.do("POST", "/Patient/rex/$validate", luna).json()).To(HaveKeyWithValue("resourceType", "OperationOutcome"))
		Expect(s.do("GET", "/Patient/rex/_history/1", "").status).To(Equal(http.StatusOK))
	})
})
