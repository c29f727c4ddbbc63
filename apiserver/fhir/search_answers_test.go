package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

// inOrder are the references to the matches of a searchset, in its order.
func inOrder(searchset document) []string {
	found := []string{}
	for _, entry := range searchset.entries() {
		if entry.at("search", "mode") == "match" {
			found = append(found, fmt.Sprint(entry.at("resource", "id")))
		}
	}
	return found
}

var _ = Describe("A searchset", Ordered, ContinueOnFailure, func() {
	var s searching
	BeforeAll(func(ctx context.Context) { s = newClinic(ctx) })

	It("includes what matches refer to, and what refers to them, each once", func() {
		for search, want := range map[string][]string{
			"Patient?_id=jose&_include=Patient:organization":                                                                {"Organization/hl7"},
			"Patient?_id=jose,luna&_include=Patient:general-practitioner":                                                   {"Organization/hl7", "Practitioner/ann"},
			"Patient?_id=jose,luna&_include=Patient:general-practitioner:Practitioner":                                      {"Practitioner/ann"},
			"Patient?_id=rex&_include=Patient:general-practitioner":                                                         {}, // it is elsewhere
			"Patient?_id=jose,luna&_include=Patient:organization&_include=Patient:general-practitioner":                     {"Organization/dept", "Organization/hl7", "Practitioner/ann"},
			"Patient?_id=luna&_include=Patient:organization&_include=Organization:partof":                                   {"Organization/dept"},
			"Patient?_id=luna&_include=Patient:organization&_include:iterate=Organization:partof":                           {"Organization/dept", "Organization/hl7"},
			"Organization?_id=team&_include:iterate=Organization:partof":                                                    {"Organization/dept", "Organization/hl7"},
			"Organization?_include:iterate=Organization:partof":                                                             {}, // all match already
			"Patient?_id=luna&_include=*":                                                                                   {"Organization/dept", "Organization/hl7"},
			"Patient?_id=luna&_include=Patient:*":                                                                           {"Organization/dept", "Organization/hl7"},
			"Patient?_id=luna&_revinclude=Group:member":                                                                     {"Group/herd"},
			"Patient?_id=jose&_revinclude=*":                                                                                {"Device/scanner"},
			"Organization?_id=hl7&_revinclude=Patient:organization&_revinclude=Location:organization":                       {"Location/graz", "Patient/jose"},
			"Organization?_id=hl7&_revinclude=Patient:organization&_revinclude:iterate=Device:patient":                      {"Device/scanner", "Patient/jose"},
			"Practitioner?_id=ann&_revinclude=PractitionerRole:practitioner&_include:iterate=PractitionerRole:organization": {"Organization/dept", "PractitionerRole/vet"},
			"Patient?_id=max&_include=Patient:link&_revinclude=Patient:link":                                                {"Patient/rex"},
		} {
			a := s.ask(search)
			Expect(a.status).To(Equal(http.StatusOK), search+": "+a.body)
			expectValid(a)
			Expect(ofMode(a.json(), "include")).To(Equal(want), search)
			Expect(a.json().entries()).To(HaveLen(len(modes(a.json()))), "each once")
			Expect(a.json()).To(HaveKeyWithValue("total", BeEquivalentTo(len(ofMode(a.json(), "match")))), "included records do not count")
		}
		Expect(s.ask("Patient?_id=jose&_include=Patient:organization").json().at("entry", 1, "fullUrl")).To(Equal(s.base + "/Organization/hl7"))
		Expect(s.ask("patient?_id=rex&_revinclude=Group:member").json().at("entry", 1, "fullUrl")).To(Equal(s.base + "/group/herd"))
		Expect(s.ask("practitioner?_id=ann&_revinclude=PractitionerRole:practitioner").json().at("entry", 1, "fullUrl")).To(Equal(s.base + "/practitioner-role/vet"))
	})

	It("follows cycles once", func(ctx context.Context) {
		s := searching{newSite(ctx)}
		for _, id := range []string{"a", "b", "c"} {
			next := map[string]string{"a": "b", "b": "c", "c": "a"}[id]
			s.put("/Patient/"+id, `{"resourceType":"Patient","id":"`+id+`","link":[{"other":{"reference":"Patient/`+next+`"},"type":"seealso"},{"other":{"reference":"Patient/`+id+`"},"type":"seealso"}]}`)
		}
		for _, search := range []string{
			"Patient?_id=a&_include:iterate=Patient:link", "Patient?_id=a&_include:iterate=*", "Patient?_id=a&_revinclude:iterate=*&_include:iterate=*",
		} {
			found := s.ask(search).json()
			Expect(ofMode(found, "match")).To(Equal([]string{"Patient/a"}), search)
			Expect(ofMode(found, "include")).To(Equal([]string{"Patient/b", "Patient/c"}), search)
		}
		s.finds(map[string]string{"Patient?link.link.link._id=a": "a b c", "Patient?_has:Patient:link:_has:Patient:link:_id=a": "a b c"})
	})

	It("says so when more is to be included than it may hold", func(ctx context.Context) {
		few := searching{newSite(ctx, func(site *fhir.Endpoint) { site.Limits.MaxIncluded = new(int32(2)) })}
		few.put("/Patient/p", `{"resourceType":"Patient"}`)
		for _, id := range []string{"a", "b", "c"} {
			few.put("/RelatedPerson/"+id, `{"resourceType":"RelatedPerson","patient":{"reference":"Patient/p"}}`)
		}
		a := few.ask("Patient?_revinclude=RelatedPerson:patient")
		expectValid(a)
		Expect(ofMode(a.json(), "include")).To(HaveLen(2))
		last := a.json().entries()[3]
		Expect(last.at("search", "mode")).To(Equal("outcome"))
		Expect(last.at("resource", "issue", 0, "details", "coding", 0, "code")).To(Equal("too_costly"))
		Expect(a.json()).To(HaveKeyWithValue("total", BeEquivalentTo(1)))
	})

	It("includes the patient that patient= names, by the contract (4.1)", func() {
		contract := with("Accept", "application/json")
		for search, want := range map[string][]string{
			"device?patient=Patient/jose":                                    {"Patient/jose"},
			"device?patient=jose":                                            {"Patient/jose"},
			"device?patient=" + s.base + "/patient/jose":                     {"Patient/jose"},
			"device?patient=Patient/luna":                                    {"Patient/luna"}, // though nothing matches
			"location?patient=Patient/luna":                                  {"Patient/luna"}, // nor could
			"device?patient=Patient/nobody":                                  {},
			"device?patient=https://elsewhere.example/Patient/jose":          {},
			"device?patient=Patient/jose,Patient/luna":                       {"Patient/jose", "Patient/luna"},
			"device?patient=Patient/jose&_include=Device:patient":            {"Patient/jose"},
			"patient?patient=rex":                                            {"Patient/rex"},
			"patient?patient=rex&_count=0":                                   {},
			"device?patient.name=jose":                                       {},
			"device?patient:missing=true":                                    {},
			"device?patient=Patient/jose&_summary=count":                     {},
			"device?patient=Patient/jose&patient=Patient/luna&_elements=url": {"Patient/jose", "Patient/luna"},
		} {
			Expect(ofMode(s.ask(search, contract).json(), "include")).To(Equal(want), search)
		}
		Expect(ofMode(s.ask("device?patient=Patient/jose").json(), "include")).To(BeEmpty(), "FHIR filters only")
		Expect(ofMode(s.ask("device?patient=Patient/jose", contract, with("X-Caller", "lists devices")).json(), "include")).To(BeEmpty())
		Expect(s.ask("device?patient=Patient/jose", contract).json()).To(HaveKeyWithValue("total", BeEquivalentTo(1)))
	})

	It("has parts of resources", func() {
		entry := func(search string) document {
			GinkgoHelper()
			a := s.ask(search)
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			return a.json().at("entry", 0, "resource").(map[string]any)
		}
		tagged := HaveKeyWithValue("tag", ContainElement(HaveKeyWithValue("code", "SUBSETTED")))
		s.put("/Group/told", `{"resourceType":"Group","id":"told","type":"animal","actual":true,"name":"Told","text":{"status":"generated","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\">told</div>"},`+
			`"member":[{"entity":{"reference":"Patient/jose"}}],"implicitRules":"http://rules.example"}`)
		for _, search := range []string{"Group?_id=told&_elements=name", "Group?_id=told&_elements=Group.name"} {
			part := entry(search)
			Expect(part).To(And(HaveKeyWithValue("name", "Told"), HaveKey("type"), HaveKey("actual"), HaveKey("id"), HaveKey("implicitRules")), "what must be there stays")
			Expect(part).NotTo(Or(HaveKey("member"), HaveKey("text")))
			Expect(part["meta"]).To(tagged)
		}
		Expect(entry("Group?_id=told&_summary=true")).To(And(HaveKey("name"), Not(HaveKey("text")), Not(HaveKey("member")), HaveKeyWithValue("meta", tagged)))
		Expect(entry("Group?_id=told&_summary=text")).To(And(HaveKey("text"), HaveKey("type"), Not(HaveKey("name")), HaveKeyWithValue("meta", tagged)))
		Expect(entry("Group?_id=told&_summary=data")).To(And(HaveKey("name"), HaveKey("member"), Not(HaveKey("text")), HaveKeyWithValue("meta", tagged)))
		Expect(entry("Group?_id=told&_summary=false")).To(And(HaveKey("name"), HaveKey("member"), HaveKey("text"), HaveKeyWithValue("meta", Not(tagged))))
		Expect(entry("?_type=Group,Patient&_id=told&_elements=Group.name,Patient.birthDate")).To(And(HaveKey("name"), Not(HaveKey("member"))))
		Expect(entry("?_type=Group,Patient&_id=luna&_elements=Group.name")).To(And(HaveKey("id"), Not(HaveKey("birthDate"))))
		whole := s.ask("Patient?_id=jose&_elements=gender&_include=Patient:organization").json()
		Expect(whole.at("entry", 1, "resource")).To(HaveKey("telecom"), "elements are those of matches")
		summary := s.ask("Patient?_id=jose&_summary=true&_include=Patient:organization").json()
		Expect(summary.at("entry", 1, "resource", "meta")).To(tagged)
		Expect(s.ask("Group/told?_summary=text").json()).To(And(HaveKey("text"), Not(HaveKey("name"))))
		s.refuses("Group?_summary=all", "Group?_summary=text&_elements=name")
		s.do("DELETE", "/Group/told", "")
	})

	It("is in the order asked for, what has no value last", func() {
		for search, want := range map[string]string{
			"Patient?_sort=family":                           "jose rex luna max",
			"Patient?_sort=-family":                          "luna rex jose max",
			"Patient?_sort=birthdate,_id":                    "luna jose max rex",
			"Patient?_sort=-birthdate,-_id":                  "jose luna rex max",
			"Patient?_sort=-_id":                             "rex max luna jose",
			"Organization?_sort=name":                        "dept hl7 team",
			"Practitioner?_sort=-given,_id":                  "ann pete",
			"PractitionerRole?_sort=date":                    "vet open",
			"PractitionerRole?_sort=-date":                   "open vet",
			"?_type=Practitioner,Organization&_sort=name":    "ann dept hl7 pete team",
			"?_type=Organization,Location&_sort=-name&_id=x": "",
		} {
			Expect(strings.Join(inOrder(s.ask(search).json()), " ")).To(Equal(want), search)
			var walked []string
			for next := s.ask(search + "&_count=1").json(); ; next = s.do("GET", next.link("next"), "", acceptFHIR).json() {
				walked = append(walked, inOrder(next)...)
				if next.link("next") == "" {
					break
				}
			}
			Expect(strings.Join(walked, " ")).To(Equal(want), search+", page by page")
		}
		s.refuses("Patient?_sort=gender", "Patient?_sort=-date", "Location?_sort=near")
		Expect(s.ask("patient?_sort=-date", with("Accept", "application/json")).status).To(Equal(http.StatusOK))
	})

	It("covers the types of the site that are asked for", func() {
		s.finds(map[string]string{
			"?_type=Patient,Practitioner&name=s":                       "luna rex",
			"?_type=Patient,Practitioner,PractitionerRole&active=true": "ann jose vet",
			"?_tag=urn:t|X":                                               "probe",
			"?_id=jose,ann,hl7":                                           "ann hl7 jose",
			"?identifier=urn:org|L7":                                      "hl7",
			"?_type=patient&gender=male":                                  "jose",
			"?telecom=555":                                                "jose",
			"?patient=Patient/jose":                                       "scanner",
			"?_has:Group:member:type=animal":                              "luna rex",
			"?_type=Location,Organization&partof=vienna":                  "graz",
			"?_type=Location,Organization&partof:below=vienna":            "graz nowhere",
			"?_type=Location,Organization&partof:below=hl7":               "dept team",
			"?_type=Location,Organization&partof:above=Organization/dept": "dept team",
		})
		s.refuses("?name=x", "?_type=Observation", "?_type=Patient,Device&gender=male", "Patient?_type=Patient")
		all := s.ask("?").json()
		Expect(all).To(HaveKeyWithValue("total", BeEquivalentTo(len(clinic))))
		Expect(all.link("self")).To(Equal(s.base))
		Expect(all.at("entry", 0, "fullUrl")).To(HavePrefix(s.base + "/"))

		By("page by page, with tokens that are of these types")
		page := s.ask("?_type=Patient,Device&_count=2&_sort=_id").json()
		next := page.link("next")
		Expect(inOrder(page)).To(Equal([]string{"jose", "luna"}))
		Expect(inOrder(s.do("GET", next, "").json())).To(Equal([]string{"max", "probe"}))
		for _, other := range []string{strings.Replace(next, "Patient%2CDevice", "Patient", 1), strings.Replace(next, "Patient%2CDevice", "Device%2CPatient", 1)} {
			Expect(other).NotTo(Equal(next))
			Expect(s.do("GET", other, "").status).To(Equal(http.StatusBadRequest))
		}
		Expect(s.do("GET", next, "", with("X-Caller", "lists patients")).status).To(Equal(http.StatusBadRequest))

		By("by POST and in a batch too")
		form := with("Content-Type", "application/x-www-form-urlencoded")
		posted := s.do("POST", "/_search?_type=Patient,Device", url.Values{"_id": {"jose,probe"}}.Encode(), form, acceptFHIR)
		Expect(ofMode(posted.json(), "match")).To(Equal([]string{"Device/probe", "Patient/jose"}))
		Expect(posted.json().link("self")).To(Equal(s.base + "?_id=jose%2Cprobe&_type=Patient%2CDevice"))
		batch := s.do("POST", "", bundleOf("batch", asks("GET", "?_type=Patient&_id=jose", ""), asks("GET", "", ""), asks("DELETE", "?_id=jose", "")), sendFHIR, acceptFHIR).json()
		Expect(statuses(batch)).To(Equal([]string{"200 OK", "400 Bad Request", "400 Bad Request"}))
		Expect(batch.at("entry", 0, "resource", "total")).To(BeEquivalentTo(1))
	})

	It("repeats in self what was understood", func() {
		for search, want := range map[string]string{
			"Patient?name:exact=A%20B&_has=Group:member:code=x&_count=5000&_sort=":      "_count=1000&_has=Group%3Amember%3Acode%3Dx&name%3Aexact=A%2520B",
			"Patient?organization.name=x,y&_include=Patient:link&_summary=text&nme=z":   "_include=Patient%3Alink&_summary=text&organization.name=x%2Cy",
			"Patient?birthdate=ge2020-01-01T00:00:00 02:00&gender:not=male,female&_q=x": "birthdate=ge2020-01-01T00%3A00%3A00+02%3A00&gender%3Anot=male%2Cfemale",
		} {
			a := s.ask(search, with("Prefer", "handling=lenient"))
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(a.json().link("self")).To(Equal(s.base + "/Patient?" + want))
			Expect(s.do("GET", a.json().link("self"), "").status).To(Equal(http.StatusOK))
		}
	})

	It("is lenient where the site is, unless the request is strict", func(ctx context.Context) {
		lenient := searching{newSite(ctx, func(site *fhir.Endpoint) { site.Lenient = true })}
		for _, search := range []string{"Patient?nme=x", "Patient?organization.nme=x", "Patient?_has:Group:member:nme=x", "Patient?_filter=x", "Patient?nme=x&_summary=count"} {
			a := lenient.ask(search)
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(a.json().at("entry", 0, "search", "mode")).To(Equal("outcome"), search)
			Expect(lenient.ask(search, with("Prefer", "handling=strict")).status).To(Equal(http.StatusBadRequest), search)
		}
		lenient.refuses("Patient?gender:exact=x", "Patient?birthdate=x", "Patient?organization:Patient.name=x", "Patient?_sort=nme")
		Expect(lenient.do("DELETE", "/Patient?nme=x", "").status).To(Equal(http.StatusBadRequest), "criteria that are passed over would choose others")
	})

	It("alone is lenient: histories and reads have nowhere to say so", func(ctx context.Context) {
		lenient := searching{newSite(ctx, func(site *fhir.Endpoint) { site.Lenient = true })}
		lenient.put("/Patient/rex", luna)
		for _, path := range []string{"/Patient/rex", "/Patient/rex/_history/1", "/Patient/rex/_history", "/patient/rex/history", "/Patient/_history", "/_history"} {
			for name, options := range map[string][]option{
				"by the site": nil, "by the request": {with("Prefer", "handling=lenient")}, "in FHIR": {acceptFHIR, with("Prefer", "handling=lenient")},
			} {
				a := lenient.do("GET", path+"?nme=x", "", options...)
				Expect(a.status).To(Equal(http.StatusBadRequest), path+" "+name)
				Expect(a.code()).To(Equal("invalid_query"))
				Expect(a.json().at("issue", 0, "diagnostics")).To(ContainSubstring(`"nme"`))
			}
		}
	})

	It("takes times without a zone in the site's", func(ctx context.Context) {
		zoned := searching{newSite(ctx, func(site *fhir.Endpoint) { site.Zone = time.FixedZone("", 10*3600) })}
		zoned.put("/Patient/rex", `{"resourceType":"Patient","id":"rex","deceasedDateTime":"2020-02-29T10:15:00+10:00","birthDate":"2019-05-03"}`)
		zoned.finds(map[string]string{
			"Patient?death-date=2020-02-29T10:15": "rex", "Patient?death-date=2020-02-29T10:15Z": "", "Patient?death-date=2020-02-29T00:15Z": "rex", "Patient?birthdate=2019-05-03": "rex",
		})
	})

	It("says all that is wrong, where it is and what would be right", func() {
		a := s.ask("Patient?organization.partof.active=maybe&gender=male,|&_has:Group:member:cod=x&birthdate=1980&birthdate=1980-13&nme=x")
		Expect(a.status).To(Equal(http.StatusBadRequest))
		var said []string
		for i := range 5 {
			said = append(said, a.json().at("issue", i, "diagnostics").(string))
		}
		for i, want := range []string{
			`"_has:Group:member:cod": _has level 1, on Group: "cod" is not known for Group; did you mean code?`,
			`"birthdate": repetition 2 of 2: "1980-13" is not a date: there is no month 13; correct the month`,
			`"gender": value 2 of 2: "|" is not a token; write code, system|code, |code or system|`,
			`"nme": "nme" is not known for Patient; did you mean name?`,
			`"organization.partof.active": chain link 1, to Organization: chain link 2, to Organization: "maybe" is neither true nor false`,
		} {
			Expect(said[i]).To(ContainSubstring(want))
		}
		Expect(slices.IsSorted(said)).To(BeTrue())
	})
})
