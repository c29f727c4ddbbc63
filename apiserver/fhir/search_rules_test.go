package fhir_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// clinic are the records that the rules of search are tried on, by path.
var clinic = map[string]string{
	"Organization/hl7": `"name":"Health Level Seven","alias":["HL7"],"identifier":[{"system":"urn:org","value":"L7"}],` +
		`"telecom":[{"system":"phone","value":"+1 734"},{"system":"email","value":"HQ@hl7.example"}],"address":[{"line":["3300 Washtenaw"],"city":"Ann Arbor"}]`,
	"Organization/dept": `"name":"Department","partOf":{"reference":"Organization/hl7"}`,
	"Organization/team": `"name":"Team","partOf":{"reference":"Organization/dept"}`,
	"Location/vienna":   `"name":"Stephansplatz","alias":["Dom"],"position":{"latitude":48.2085,"longitude":16.3721}`,
	"Location/graz":     `"name":"Uhrturm","position":{"latitude":47.0737,"longitude":15.4377},"partOf":{"reference":"Location/vienna"},"managingOrganization":{"reference":"Organization/hl7"}`,
	"Location/nowhere":  `"name":"Nowhere","partOf":{"reference":"Location/graz"}`,
	"Practitioner/ann":  `"name":[{"family":"O'Neil","given":["Ann","Marie"],"prefix":["Dr."],"suffix":["MD"]}],"active":true`,
	"Practitioner/pete": `"name":[{"text":"Pete Smyth"}]`,
	"PractitionerRole/vet": `"active":true,"practitioner":{"reference":"Practitioner/ann"},"organization":{"reference":"Organization/dept"},` +
		`"period":{"start":"2020-01-01","end":"2020-12-31"},"specialty":[{"coding":[{"system":"urn:sp","code":"surgery","display":"Small animals"}],"text":"Surgery of pets"}]`,
	"PractitionerRole/open": `"practitioner":{"reference":"Practitioner/pete"},"period":{"start":"2020-06"}`,
	"Patient/jose": `"name":[{"family":"Müller-Lüdenscheidt","given":["José"]},{"text":"  the   Great "}],"gender":"male","birthDate":"1980-05-03","active":true,` +
		`"identifier":[{"system":"urn:chip","value":"A1","type":{"coding":[{"system":"urn:types","code":"MR"}],"text":"Chip number"}}],` +
		`"managingOrganization":{"reference":"Organization/hl7"},"generalPractitioner":[{"reference":"Practitioner/ann/_history/3"}],"telecom":[{"system":"phone","value":"555"}]`,
	"Patient/luna": `"name":[{"family":"Smith"}],"gender":"female","birthDate":"1980","deceasedBoolean":false,"identifier":[{"system":"urn:chip","value":"A,1|x"}],` +
		`"managingOrganization":{"reference":"Organization/dept"},"generalPractitioner":[{"reference":"Organization/hl7"},{"identifier":{"system":"urn:vets","value":"V7"}}]`,
	"Patient/rex": `"name":[{"family":"Schmidt"}],"deceasedDateTime":"2020-02-29T10:15:00+02:00","active":false,"generalPractitioner":[{"reference":"https://elsewhere.example/r4/Practitioner/ann"}]`,
	"Patient/max": `"deceasedBoolean":true,"link":[{"other":{"reference":"Patient/rex"},"type":"seealso"}]`,
	"Group/herd": `"type":"animal","actual":true,"code":{"coding":[{"system":"urn:herds","code":"cattle"}]},"member":[{"entity":{"reference":"Patient/luna"}},{"entity":{"reference":"Patient/rex"}}],` +
		`"characteristic":[{"code":{"coding":[{"code":"coat"}]},"valueCodeableConcept":{"coding":[{"code":"brown"}]},"exclude":false},{"code":{"coding":[{"code":"horns"}]},"valueBoolean":true,"exclude":false}]`,
	"Device/scanner": `"deviceName":[{"name":"Scanny","type":"user-friendly-name"}],"type":{"text":"Ultrasound","coding":[{"display":"Sonograph"}]},"url":"http://dev.example/a/b","patient":{"reference":"Patient/jose"}`,
	"Device/probe":   `"url":"http://dev.example/a","type":{"text":"Probe"},"meta":{"profile":["http://profile.example/P"],"tag":[{"system":"urn:t","code":"X"}]}`,
}

// searching is a site with the clinic's records.
type searching struct{ site }

func newClinic(ctx context.Context) searching {
	GinkgoHelper()
	s := searching{newSite(ctx)}
	for _, path := range slices.Sorted(maps.Keys(clinic)) {
		typeName, id, _ := strings.Cut(path, "/")
		a := s.do("PUT", "/"+path, `{"resourceType":"`+typeName+`","id":"`+id+`",`+clinic[path]+`}`, sendFHIR)
		Expect(a.status).To(Equal(http.StatusCreated), path+": "+a.body)
	}
	return s
}

// ask sends a search, the query string of which is written as it reads.
func (s searching) ask(search string, options ...option) answer {
	GinkgoHelper()
	path, query, _ := strings.Cut(search, "?")
	values := url.Values{}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		values.Add(name, value)
	}
	if path != "" {
		path = "/" + path
	}
	return s.do("GET", path+"?"+values.Encode(), "", append([]option{acceptFHIR}, options...)...)
}

// finds expects searches to match some ids, by search.
func (s searching) finds(searches map[string]string, options ...option) {
	GinkgoHelper()
	for search, want := range searches {
		a := s.ask(search, options...)
		Expect(a.status).To(Equal(http.StatusOK), search+": "+a.body)
		expectValid(a)
		found := ofMode(a.json(), "match")
		for i, reference := range found {
			_, found[i], _ = strings.Cut(reference, "/")
		}
		slices.Sort(found)
		Expect(strings.Join(found, " ")).To(Equal(want), search)
		Expect(a.json()).To(HaveKeyWithValue("total", BeEquivalentTo(len(found))), search)
	}
}

// refuses expects searches to be refused.
func (s searching) refuses(searches ...string) {
	GinkgoHelper()
	for _, search := range searches {
		a := s.ask(search)
		Expect(a.status).To(Equal(http.StatusBadRequest), search)
		Expect(a.code()).To(Equal("invalid_query"), search)
	}
}

// ofMode are the references to the resources of a searchset that are there for a reason.
func ofMode(searchset document, mode string) []string {
	found := []string{}
	for reference, is := range modes(searchset) {
		if is == mode {
			found = append(found, reference)
		}
	}
	slices.Sort(found)
	return found
}

var _ = Describe("Rule", Ordered, ContinueOnFailure, func() {
	var s searching
	BeforeAll(func(ctx context.Context) { s = newClinic(ctx) })

	It("1: strings begin with what is searched for, whatever the case and accents", func() {
		s.finds(map[string]string{
			"Patient?name=jose": "jose", "Patient?name=JOSÉ": "jose", "Patient?family=muller": "jose", "Patient?name=great": "", "Patient?name=the great": "jose",
			"Patient?name=sch,smi": "luna rex", "Patient?name:contains=LUDEN": "jose", "Patient?name:exact=Müller-Lüdenscheidt": "jose", "Patient?name:exact=müller-lüdenscheidt": "",
			"Practitioner?name=dr": "ann", "Practitioner?name=md": "ann", "Practitioner?name=marie": "ann", "Practitioner?given=marie": "ann", "Practitioner?given=dr": "",
			"Practitioner?name=o'n": "ann", "Organization?name=hl7": "hl7", "Organization?name=health": "hl7", "Location?name=dom": "vienna", "Organization?address=3300": "hl7",
			"Organization?address=ann": "hl7", "Organization?address-city=ann": "hl7", "Device?device-name=scan": "scanner", "Device?device-name=ultra": "scanner", "Device?device-name=sono": "scanner",
			"Patient?name=smith&name=x": "", "Patient?name=smith&gender=female": "luna",
		})
		s.refuses("Patient?name:below=x", "Patient?name= ")
	})

	It("2: tokens compare systems and codes", func() {
		s.finds(map[string]string{
			"Patient?identifier=a1": "jose", "Patient?identifier=urn:chip|A1": "jose", "Patient?identifier=urn:chip|": "jose luna", "Patient?identifier=|A1": "", "Patient?identifier=urn:CHIP|A1": "",
			`Patient?identifier=A\,1\|x`: "luna", `Patient?identifier=A1,urn:chip|A\,1\|x`: "jose luna",
			"Patient?gender=MALE": "jose", "Patient?gender=http://hl7.org/fhir/administrative-gender|male": "jose", "Patient?gender=|male": "", "Patient?gender:not=male": "luna max rex",
			"Patient?gender:not=male,female": "max rex", "Patient?identifier:not=A1": "luna max rex", "Patient?identifier:text=chip": "jose", "Patient?identifier:text=number": "",
			"Patient?identifier:of-type=urn:types|MR|A1": "jose", "Patient?identifier:of-type=urn:types|mr|a1": "jose", "Patient?identifier:of-type=urn:types|XX|A1": "",
			"Patient?gender:in=http://hl7.org/fhir/ValueSet/administrative-gender": "jose luna", "Patient?gender:not-in=http://hl7.org/fhir/ValueSet/administrative-gender": "max rex",
			"Patient?telecom=555": "jose", "Patient?telecom=phone|555": "jose", "Patient?telecom=email|555": "", "Patient?phone=555": "jose", "Patient?email=555": "",
			"Organization?telecom=hq@HL7.example": "hl7", "Organization?telecom=email|hq@hl7.example": "hl7",
			"Patient?active=true": "jose", "Patient?active=false": "rex", "Patient?active=http://hl7.org/fhir/special-values|false": "rex", "Patient?active:not=true": "luna max rex",
			"PractitionerRole?specialty:text=small": "vet", "PractitionerRole?specialty:text=surgery": "vet", "PractitionerRole?specialty=urn:sp|SURGERY": "vet", "Device?_tag=urn:t|X": "probe", "Device?_tag=x": "probe",
		})
		s.refuses("Patient?gender:below=x", "Patient?gender:in=http://none.example", "Patient?identifier:of-type=urn:types|MR", "Patient?active=yes", "Patient?identifier=|", "Patient?gender:text=x")
	})

	It("3: who is not said to be deceased is not", func() {
		s.finds(map[string]string{
			"Patient?deceased=false": "jose luna", "Patient?deceased=true": "max rex", "Patient?deceased:not=true": "jose luna", "Patient?death-date=2020-02-29": "rex", "Patient?deceased:missing=false": "jose luna max rex",
		})
	})

	It("4: references, in all their forms", func() {
		s.finds(map[string]string{
			"Patient?organization=hl7": "jose", "Patient?organization=Organization/hl7": "jose", "Patient?organization=Organization/HL7": "jose", "Patient?organization=" + s.base + "/Organization/hl7": "jose",
			"Patient?organization=" + s.base + "/organization/hl7": "jose", "Patient?organization=https://elsewhere.example/r4/Organization/hl7": "", "Patient?organization=Organization/hl7/_history/9": "jose",
			"Patient?general-practitioner=ann": "jose", "Patient?general-practitioner=Practitioner/ann": "jose", "Patient?general-practitioner=https://elsewhere.example/r4/Practitioner/ann": "rex",
			"Patient?general-practitioner:Practitioner=ann": "jose", "Patient?general-practitioner:Organization=hl7": "luna", "Patient?general-practitioner:Organization=ann": "", "Patient?general-practitioner=hl7": "luna",
			"Patient?general-practitioner:identifier=urn:vets|V7": "luna", "Patient?general-practitioner:identifier=v7": "luna", "Patient?general-practitioner:missing=true": "max",
			"Patient?organization=hl7,dept": "jose luna", "Person?patient=nobody": "", "Group?patient=luna": "herd", "Group?member=Patient/rex": "herd", "Device?patient=Patient/jose": "scanner",
			"Location?patient=Patient/jose": "", "Patient?link:Patient=rex": "max",
		})
		s.refuses("Patient?organization:Patient=x", "Patient?organization=a/b/c", "Patient?organization:exact=hl7")
	})

	It("4: a bare id is refused only when it is that of records of several types", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/Patient/a", `{"resourceType":"Patient","generalPractitioner":[{"reference":"Practitioner/x"}]}`)
		Expect(s.do("GET", "/patient?general-practitioner=x", "").json().ids()).To(Equal([]string{"a"}))
		s.put("/Patient/b", `{"resourceType":"Patient","generalPractitioner":[{"reference":"Organization/x"}]}`)
		ambiguous := s.do("GET", "/patient?general-practitioner=x", "")
		Expect(ambiguous.status).To(Equal(http.StatusBadRequest))
		Expect(ambiguous.body).To(ContainSubstring("Organization, Practitioner"))
		Expect(ambiguous.code()).To(Equal("invalid_query"))
		Expect(s.do("GET", "/patient?general-practitioner=Organization/x", "").json().ids()).To(Equal([]string{"b"}))
		Expect(s.do("GET", "/patient?general-practitioner:Practitioner=x", "").json().ids()).To(Equal([]string{"a"}))
	})

	It("5: dates are ranges by their precision", func() {
		s.finds(map[string]string{
			"Patient?birthdate=1980": "jose luna", "Patient?birthdate=1980-05-03": "jose", "Patient?birthdate=ne1980-05-03": "luna", "Patient?birthdate=gt1980-06": "luna", "Patient?birthdate=lt1980-05": "luna",
			"Patient?birthdate=ge1980-05-03": "jose luna", "Patient?birthdate=le1980-05-03": "jose luna", "Patient?birthdate=sa1980-05-02": "jose", "Patient?birthdate=eb1981": "jose luna", "Patient?birthdate=eb1980-05-03": "",
			"Patient?birthdate=ap1981": "jose luna", "Patient?birthdate=ap2020": "", "Patient?death-date=2020-02-29T10:15:00+02:00": "rex", "Patient?death-date=2020-02-29T08:15": "rex", "Patient?death-date=2020-02-29T08:15Z": "rex",
			"Patient?death-date=gt2020-02-29T08:15:00Z": "", "Patient?birthdate=1979,1980-05-03": "jose", "Patient?birthdate=ge1980&birthdate=le1980-05-02": "luna",
			"PractitionerRole?date=2020": "vet", "PractitionerRole?date=gt2025": "open", "PractitionerRole?date=ge2020-03": "open vet", "PractitionerRole?date=ne2020": "open", "PractitionerRole?date=sa2020-02": "open",
			"PractitionerRole?date=eb2021": "vet", "PractitionerRole?date=lt2020-02": "vet",
		})
		s.refuses("Patient?birthdate=1980-13", "Patient?birthdate=xx1980", "Patient?birthdate:exact=1980")
	})

	It("5: dates finer than a microsecond miss nothing, and two ends are one range, in either engine", func(ctx SpecContext) {
		const at = "2020-02-29T08:15:00"
		for name, s := range map[string]searching{"cluster": {newSite(ctx)}, "postgres": {newPostgresSite(ctx)}} {
			By(name)
			for id, fraction := range map[string]string{"half": ".5", "fine": ".5000001", "late": ".500001", "micro": ".500000"} {
				s.put("/Patient/"+id, `{"resourceType":"Patient","deceasedDateTime":"`+at+fraction+`Z","birthDate":"1990-02-11"}`)
			}
			s.put("/Patient/year", `{"resourceType":"Patient","birthDate":"1990"}`)
			s.put("/Patient/month", `{"resourceType":"Patient","birthDate":"1990-02"}`)
			death := func(prefix, fraction string) string { return "death-date=" + prefix + at + fraction + "Z" }
			stored := s.do("GET", "/Patient/year", "", acceptFHIR).json().at("meta", "lastUpdated").(string)
			s.finds(map[string]string{
				"Patient?" + death("lt", ".5000001"):                                                          "fine half micro",
				"Patient?" + death("le", ".5000001"):                                                          "fine half micro",
				"Patient?" + death("gt", ".5000001"):                                                          "fine half late micro",
				"Patient?" + death("ge", ".5000001"):                                                          "fine half late micro",
				"Patient?" + death("eq", ".5000001"):                                                          "fine micro",
				"Patient?" + death("sa", ".5000001"):                                                          "fine late micro",
				"Patient?" + death("eb", ".5000001"):                                                          "fine micro",
				"Patient?" + death("sa", ".5000001") + "&" + death("lt", ".500001"):                           "fine micro",
				"Patient?_id=year&_lastUpdated=lt" + strings.Replace(stored, "Z", "0001Z", 1):                 "year",
				"Patient?_id=year&_lastUpdated=ge" + strings.Replace(stored, "Z", "0001Z", 1):                 "",
				"Patient?birthdate=ge1990-02-10&birthdate=le1990-02-20":                                       "fine half late micro month year",
				"Patient?birthdate=ge1990-02-10&birthdate=lt1990-02-11":                                       "month year",
				"Patient?birthdate=ge1990-02-12&birthdate=le1990-02-20&_sort=-birthdate":                      "month year",
				"Patient?birthdate=gt1990-02&birthdate=lt1990-03&_sort=birthdate":                             "year",
				"Patient?_id=year&_lastUpdated=ge" + stored + "&_lastUpdated=le" + stored + "&birthdate=1990": "year",
			})
		}
	})

	It("6: URIs compare exactly, or by what is above and below", func() {
		s.finds(map[string]string{
			"Device?url=http://dev.example/a": "probe", "Device?url=http://DEV.example/a": "", "Device?url:below=http://dev.example/a": "probe scanner", "Device?url:below=http://dev.example/": "probe scanner",
			"Device?url:below=http://dev.example/a/": "scanner", "Device?url:above=http://dev.example/a/b/c": "probe scanner", "Device?url:above=http://dev.example/a": "probe", "Device?_profile=http://profile.example/P": "probe",
		})
	})

	It("7: both parts of a composite are of one value", func() {
		s.finds(map[string]string{
			"Group?characteristic-value=coat$brown": "herd", "Group?characteristic-value=horns$true": "herd", "Group?characteristic-value=coat$true": "", "Group?characteristic-value=horns$brown,coat$brown": "herd",
		})
		s.refuses("Group?characteristic-value=coat", "Group?characteristic-value:missing=true")
	})

	It("8: near is within a distance, which the answer tells", func() {
		s.finds(map[string]string{
			"Location?near=48.2|16.4|5|km": "vienna", "Location?near=48.2|16.4": "vienna", "Location?near=48.2|16.4|200": "graz vienna", "Location?near=48.2|16.4|2000|m": "", "Location?near=48.2|16.4|100|[mi_i]": "graz vienna",
			"Location?near=0|0|1|km": "", "Location?near=47|15.4|20,48.2|16.4|5": "graz vienna", "Location?near:missing=true": "nowhere",
		})
		s.refuses("Location?near=91|0", "Location?near=48.2", "Location?near=48.2|16.4|5|parsec")
		entry := s.ask("Location?near=48.2|16.4|5|km").json().entries()[0]
		Expect(entry.at("search", "mode")).To(Equal("match"))
		Expect(entry.at("search", "extension", 0, "url")).To(Equal("http://hl7.org/fhir/StructureDefinition/location-distance"))
		Expect(entry.at("search", "extension", 0, "valueDistance", "value")).To(BeNumerically("~", 2.274, 0.01))
		Expect(entry.at("search", "extension", 0, "valueDistance", "code")).To(Equal("km"))
		Expect(s.ask("Location?name=dom").json().at("entry", 0, "search", "extension")).To(BeNil())
	})

	It("9: phonetic finds what sounds alike", func() {
		s.finds(map[string]string{
			"Patient?phonetic=Smyth": "luna rex", "Practitioner?phonetic=smith": "pete", "Practitioner?phonetic=Peat Smith": "pete", "Practitioner?phonetic=Peat Jones": "", "Practitioner?phonetic=Oneill": "ann",
		})
		s.refuses("Patient?phonetic=123", "Patient?phonetic:exact=Smith")
	})

	It("10: a comma is or, repetition is and, and a backslash takes that away", func() {
		s.finds(map[string]string{
			`Patient?identifier=A\,1\|x,A1`: "jose luna", `Patient?name=smith,jose&gender=male`: "jose", `Patient?name=jose&name=mull`: "jose", `Patient?name=jose&name=smith`: "",
		})
		s.refuses(`Patient?name=a\b`, `Patient?name=a,,b`)
	})

	It("11: chains and _has lead to other records and back", func() {
		s.finds(map[string]string{
			"Patient?organization.name=health": "jose", "Patient?organization.name=dep": "luna", "Patient?organization.partof.name=health": "luna", "Patient?general-practitioner:Practitioner.name=ann": "jose",
			"Patient?general-practitioner.name=health": "luna", "Patient?general-practitioner.name=ann,health": "jose luna", "Patient?organization.name=health&general-practitioner.name=ann": "jose",
			"Patient?organization._id=hl7": "jose", "Patient?organization.partof:missing=true": "jose",
			"Patient?_has:Group:member:code=urn:herds|cattle": "luna rex", "Patient?_has=Group:member:code=cattle": "luna rex", "Patient?_has:Group:member:code=none": "", "Patient?_has:Group:member:type=animal&gender=female": "luna",
			"Organization?_has:Patient:organization:_has:Group:member:code=cattle": "dept", "Practitioner?_has:PractitionerRole:practitioner:organization.name=dep": "ann",
			"Practitioner?_has=PractitionerRole:practitioner:active=true": "ann", "Organization?_has:Patient:organization:gender=male,female": "dept hl7", "Patient?_has:Device:patient:device-name=scan": "jose",
			"Organization?_has:Organization:partof:_has:Organization:partof:name=team": "hl7",
		})
	})

	It("12: what is missing can be told of everything but composites", func() {
		s.finds(map[string]string{
			"Patient?gender:missing=true": "max rex", "Patient?gender:missing=false": "jose luna", "Patient?birthdate:missing=true": "max rex", "Patient?name:missing=true": "max", "Patient?organization:missing=false": "jose luna",
			"Device?url:missing=false": "probe scanner", "Patient?phonetic:missing=true": "max", "Patient?species:missing=true": "jose luna max rex", "Location?patient:missing=true": "graz nowhere vienna", "Patient?_id:missing=true": "",
			"Patient?_id:missing=false&gender:missing=true": "max rex", "Patient?organization.telecom:missing=true": "luna",
		})
		s.refuses("Group?characteristic-value:missing=true", "Patient?gender:missing=yes", "Patient?gender:missing=true,false")
	})

	It("13: hierarchies can be walked up and down", func() {
		s.finds(map[string]string{
			"Organization?partof:below=hl7": "dept team", "Organization?partof:below=dept": "team", "Organization?partof:below=team": "", "Organization?partof:above=dept": "dept team", "Organization?partof:above=hl7": "dept",
			"Location?partof:below=vienna": "graz nowhere", "Location?partof:above=Location/graz": "graz nowhere", "Location?partof=vienna": "graz", "Patient?organization.partof:below=hl7": "luna",
		})
		s.refuses("Patient?organization:below=hl7", "Location?partof:above=Organization/hl7")
	})

	It("14: what a caller may not list is hidden from every step", func() {
		patientsOnly := with("X-Caller", "lists patients")
		s.finds(map[string]string{
			"Patient?organization.name=health": "", "Patient?organization=hl7": "jose", "Patient?general-practitioner.name=ann,health": "", "Patient?_has:Group:member:code=cattle": "", "Patient?_has=Group:member:code=cattle": "",
			"Patient?link.deceased=true": "max", "Patient?organization._id=hl7": "", "Patient?_has:Patient:link:deceased=true": "rex", "Patient?name=jose": "jose",
		}, patientsOnly)
		for _, search := range []string{
			"Patient?_include=Patient:organization", "Patient?_include=*", "Patient?_revinclude=Group:member", "Patient?_revinclude=*", "Patient?_include:iterate=*&_revinclude:iterate=*",
		} {
			found := s.ask(search, patientsOnly).json()
			Expect(ofMode(found, "match")).To(HaveLen(4), search)
			Expect(ofMode(found, "include")).To(BeEmpty(), search)
		}
		Expect(s.ask("Organization?name=h", patientsOnly).status).To(Equal(http.StatusForbidden))
		all := s.ask("?_sort=_id&_total=accurate", patientsOnly).json()
		Expect(all).To(HaveKeyWithValue("total", BeEquivalentTo(4)))
		Expect(all.ids()).To(Equal([]string{"jose", "luna", "max", "rex"}))
		Expect(s.ask("?_type=Organization,Group", patientsOnly).status).To(Equal(http.StatusForbidden))
		Expect(s.ask("?_type=Organization,Patient&_id=hl7,jose", patientsOnly).json().ids()).To(Equal([]string{"jose"}))
		Expect(s.ask("?", with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))

		By("also from criteria")
		update := s.do("PUT", "/Patient?organization.name=health", `{"resourceType":"Patient"}`, with("X-Caller", "lists patients"))
		Expect(update.status).To(Equal(http.StatusCreated), "as nothing is seen to match")
		record, _, _ := strings.Cut(update.header.Get("Location"), "/_history")
		s.do("DELETE", record, "")
	})

	It("14: a plain search asks for one right", func() {
		checks := func(search, caller string) int64 {
			Expect(s.ask(search, with("X-Caller", caller)).status).To(Equal(http.StatusOK))
			count, _ := asked.Load(caller)
			return count.(*atomic.Int64).Load()
		}
		Expect(checks("Patient?name=jose&organization=hl7&_sort=name", "counted plain")).To(BeEquivalentTo(1))
		Expect(checks("Patient?organization.name=x", "counted chain")).To(BeEquivalentTo(2))
		Expect(checks("Patient?_include=Patient:organization", "counted include")).To(BeEquivalentTo(2))
		Expect(checks("?_type=Patient,Person", "counted types")).To(BeEquivalentTo(2))
	})
})
