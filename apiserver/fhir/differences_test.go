package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

// TestDifferencesNameTheirTests shows that each row of the table of differences ends with the text
// of a spec of this package.
func TestDifferencesNameTheirTests(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "fhir-differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var specs strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		specs.Write(text)
	}
	rows := 0
	lastCell := regexp.MustCompile("\\| `([^`]+)` \\|$")
	for line := range strings.Lines(string(guide)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| point |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		cell := lastCell.FindStringSubmatch(line)
		if cell == nil || !strings.Contains(specs.String(), `"`+cell[1]) {
			t.Errorf("this row names no test: %s", line)
		}
	}
	if rows < 20 {
		t.Errorf("the guide has %d rows", rows)
	}
}

var _ = Describe("Differences from other servers:", func() {
	type opener = func(...func(*fhir.Endpoint)) site
	const week = `{"resourceType":"PractitionerRole","id":"week","period":{"start":"2026-03-01","end":"2026-03-04T12:00:00Z"}}`

	onEverything("ge and le on values that overlap in part", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/PractitionerRole/week", week)
		s.put("/Patient/may", `{"resourceType":"Patient","id":"may","birthDate":"1980-05"}`)
		for query, found := range map[string]bool{
			"PractitionerRole?date=ge2026-03-04":                    false,
			"PractitionerRole?date=ge2026-03-04T00:00:00Z":          true,
			"PractitionerRole?date=ge2026-03-03":                    true,
			"PractitionerRole?date=le2026-03-01T12:00:00Z":          true,
			"PractitionerRole?date=le2026-02-28":                    false,
			"Patient?birthdate=ge1980-05-31":                        false,
			"Patient?birthdate=ge1980-05-03":                        true,
			"Patient?birthdate=le1980-05-03":                        true,
			"Patient?birthdate=le1980-05-01":                        false,
			"Patient?birthdate=ge1980-05-01&birthdate=le1980-05":    true,
			"Patient?birthdate=ge1980-04&birthdate=le1980-04-30":    false,
			"Patient?birthdate=ge1980-05-31T00:00:00Z":              true,
			"Patient?birthdate=ge1980-06-01&birthdate=le1980-06":    false,
			"Patient?birthdate=gt1980-05-03&birthdate=lt1980-05-03": true,
		} {
			Expect(s.speak(spoken, "GET", "/"+query, "").json().ids()).To(HaveLen(map[bool]int{true: 1}[found]), query)
		}
	})

	onEverything("ap widens by a tenth of the distance from now", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", `{"resourceType":"Patient","id":"a","birthDate":"1980-05-03"}`)
		for query, found := range map[string]int{"ap1982": 1, "ap1977": 1, "ap1990": 0, "ap1970": 0, "ap2026": 0} {
			Expect(s.speak(spoken, "GET", "/Patient?birthdate="+query, "").json().ids()).To(HaveLen(found), query)
		}
	})

	onEverything("a date is a day in UTC", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", `{"resourceType":"Patient","id":"a","deceasedDateTime":"2026-03-05T01:00:00+02:00"}`)
		Expect(s.speak(spoken, "GET", "/Patient?death-date=2026-03-04", "").json().ids()).To(HaveLen(1))
		Expect(s.speak(spoken, "GET", "/Patient?death-date=2026-03-05", "").json().ids()).To(BeEmpty())
	})

	onEverything("fractions finer than a microsecond", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", `{"resourceType":"Patient","id":"a","deceasedDateTime":"2026-03-05T01:00:00.500000Z"}`)
		for query, found := range map[string]int{
			"lt2026-03-05T01:00:00.5000001Z": 1, "le2026-03-05T01:00:00.5000001Z": 1, "gt2026-03-05T01:00:00.4999999Z": 1,
			"lt2026-03-05T01:00:00.4999999Z": 0, "gt2026-03-05T01:00:01Z": 0,
		} {
			Expect(s.speak(spoken, "GET", "/Patient?death-date="+query, "").json().ids()).To(HaveLen(found), query)
		}
	})

	onEverything("_sort on tokens is refused", func(_ context.Context, open opener, spoken spokenDialect) {
		a := open().speak(spoken, "GET", "/Patient?_sort=gender", "")
		Expect(a.status).To(Equal(http.StatusBadRequest))
		Expect(a.json().at("issue", 0, "diagnostics")).To(And(ContainSubstring("gender"), ContainSubstring("birthdate")))
	})

	onEverything("total only where it is cheap", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		for i := range 3 {
			s.put(fmt.Sprintf("/Patient/p%d", i), `{"resourceType":"Patient"}`)
		}
		Expect(s.speak(spoken, "GET", "/Patient", "").json()["total"]).To(BeEquivalentTo(3))
		Expect(s.speak(spoken, "GET", "/Patient?_count=1&_total=accurate", "").json()["total"]).To(BeEquivalentTo(3))
		Expect(s.speak(spoken, "GET", "/Patient?_total=none", "").json()).NotTo(HaveKey("total"))
		second := s.speak(spoken, "GET", s.speak(spoken, "GET", "/Patient?_count=1", "").json().link("next"), "")
		Expect(second.json()).NotTo(HaveKey("total"), "a page in the middle")
	})

	onEverything("unknown parameters are refused", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		Expect(s.speak(spoken, "GET", "/Patient?nam=Rex", "").code()).To(Equal("invalid_query"))
		lenient := s.speak(spoken, "GET", "/Patient?nam=Rex", "", with("Prefer", "handling=lenient")).json()
		Expect(lenient.entries()).To(HaveLen(2))
		Expect(lenient.entries()[1].at("search", "mode")).To(Equal("outcome"))
	})

	onEverything("the devices of a patient are found by name in its compartment", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/rex", `{"resourceType":"Patient","id":"rex"}`)
		s.put("/Patient/max", `{"resourceType":"Patient","id":"max"}`)
		for device, patient := range map[string]string{"collar": "rex", "chip": "rex", "scale": "max"} {
			s.put("/Device/"+device, `{"resourceType":"Device","id":"`+device+`","patient":{"reference":"Patient/`+patient+`"}}`)
		}
		Expect(s.speak(spoken, "GET", "/Patient/rex/Device", "").json().ids()).To(ConsistOf("collar", "chip"))
		Expect(s.speak(spoken, "GET", "/patient/REX/device?_id=chip", "").json().ids()).To(ConsistOf("chip"))
		Expect(s.speak(spoken, "GET", "/Patient/rex/*?_type=Device", "").json().ids()).To(ConsistOf("collar", "chip"))
		Expect(s.speak(spoken, "GET", "/Patient/rex/*", "").json().ids()).To(BeEmpty())
		Expect(s.speak(spoken, "GET", "/Patient/nobody/Device", "").json().ids()).To(BeEmpty())
	})

	onEverything("a reference by the contract's URL of a record is one to the record", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/rex", `{"resourceType":"Patient","id":"rex","name":[{"text":"Rex"}]}`)
		s.put("/Device/collar", `{"resourceType":"Device","id":"collar","patient":{"reference":"`+s.base+`/patient/rex"}}`)
		for _, query := range []string{
			"/Device?patient=rex", "/Device?patient=Patient/rex", "/Device?patient=" + s.base + "/patient/rex", "/Device?patient=" + s.base + "/Patient/rex",
			"/Device?patient.name=rex", "/Patient/rex/Device",
		} {
			Expect(s.speak(spoken, "GET", query, "").json().ids()).To(ContainElement("collar"), query)
		}
		Expect(s.speak(spoken, "GET", "/Device?_include=Device:patient", "").json().ids()).To(ConsistOf("collar", "rex"))
		Expect(s.speak(spoken, "GET", "/Device?patient=max", "").json().ids()).To(BeEmpty())
		Expect(s.speak(spoken, "GET", "/Patient?_has:Device:patient:_id=collar", "").json().ids()).To(ConsistOf("rex"))

		By("the type of the target is checked")
		refused := s.speak(spoken, "PUT", "/RelatedPerson/r", `{"resourceType":"RelatedPerson","id":"r","patient":{"reference":"`+s.base+`/organization/o"}}`)
		Expect(refused.status).To(Equal(http.StatusBadRequest))
		Expect(refused.code()).To(Equal("wrong_reference_target"))
	})

	onEverything("everything of a patient has no other members of a Group", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		for _, id := range []string{"rex", "max"} {
			s.put("/Patient/"+id, `{"resourceType":"Patient","id":"`+id+`"}`)
		}
		s.put("/Group/herd", `{"resourceType":"Group","id":"herd","type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/rex"}},{"entity":{"reference":"Patient/max"}}]}`)
		Expect(s.speak(spoken, "GET", "/Patient/rex/$everything", "").json().ids()).To(ConsistOf("rex", "herd"))
		for _, name := range []string{"start", "end"} {
			a := s.speak(spoken, "GET", "/Patient/rex/$everything?"+name+"=2026", "")
			Expect(a.status).To(Equal(http.StatusBadRequest))
			Expect(a.code()).To(Equal("invalid_query"))
		}
	})

	onEverything("ids differ in more than case", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/Rex", `{"resourceType":"Patient","id":"Rex"}`)
		Expect(s.speak(spoken, "GET", "/Patient/rEX", "").json()["id"]).To(Equal("Rex"))
		Expect(s.speak(spoken, "GET", "/Patient?_id=REX", "").json().ids()).To(Equal([]string{"Rex"}))
		Expect(s.speak(spoken, "PUT", "/Patient/rex", `{"resourceType":"Patient","id":"rex","active":true}`).json()["id"]).To(Equal("Rex"))
	})

	onEverything("types have two spellings", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/PractitionerRole/week", week)
		for path, status := range map[string]int{
			"/practitioner-role/week": http.StatusOK, "/PractitionerRole/week": http.StatusOK,
			"/practitionerrole/week": http.StatusNotFound, "/PRACTITIONERROLE/week": http.StatusNotFound,
		} {
			Expect(s.speak(spoken, "GET", path, "").status).To(Equal(status), path)
		}
		Expect(s.speak(spoken, "GET", "/practitioner-role", "").json().link("self")).To(HaveSuffix("/practitioner-role"))
		Expect(s.speak(spoken, "GET", "/PractitionerRole", "").json().link("self")).To(HaveSuffix("/PractitionerRole"))
	})

	onEverything("links do not follow Forwarded headers", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		a := s.speak(spoken, "POST", "/Patient", luna, with("Forwarded", "proto=https;host=evil.example"), with("X-Forwarded-Host", "evil.example"),
			with("X-Forwarded-Proto", "https"), func(r *http.Request) { r.Host = "evil.example" })
		Expect(a.header.Get("Location")).To(HavePrefix(s.base + "/Patient/"))
	})

	onEverything("a failing test of a patch is a conflict", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		a := s.speak(spoken, "PATCH", "/Patient/a", `[{"op":"test","path":"/active","value":false}]`, with("Content-Type", "application/json-patch+json"))
		Expect(a.status).To(Equal(http.StatusConflict))
		Expect(a.code()).To(Equal("patch_test_failed"))
	})

	onEverything("patches other than JSON Patch are refused", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		for _, kind := range []string{"application/fhir+json", "application/merge-patch+json", "application/xml-patch+xml"} {
			a := s.speak(spoken, "PATCH", "/Patient/a", `{"resourceType":"Parameters"}`, with("Content-Type", kind))
			Expect(a.status).To(Equal(http.StatusUnsupportedMediaType), kind)
			Expect(a.header.Get("Accept-Patch")).To(Equal("application/json-patch+json"))
		}
	})

	onEverything("XML is refused", func(_ context.Context, open opener, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		Expect(s.speak(spoken, "GET", "/Patient/a", "", with("Accept", "application/fhir+xml")).status).To(Equal(http.StatusNotAcceptable))
		Expect(s.speak(spoken, "GET", "/Patient/a?_format=xml", "").status).To(Equal(http.StatusNotAcceptable))
		Expect(s.speak(spoken, "POST", "/Patient", "<Patient/>", with("Content-Type", "application/fhir+xml")).status).To(Equal(http.StatusUnsupportedMediaType))
	})

	It("a transaction of several writes needs Postgres", func(ctx context.Context) {
		const bundle = `{"resourceType":"Bundle","type":"transaction","entry":[
			{"request":{"method":"POST","url":"Patient"},"resource":{"resourceType":"Patient"}},
			{"request":{"method":"POST","url":"Patient"},"resource":{"resourceType":"Patient"}}]}`
		for _, spoken := range spokenDialects {
			refused := newSite(ctx).speak(spoken, "POST", "", bundle)
			Expect(refused.status).To(Equal(http.StatusNotImplemented))
			Expect(refused.json().at("issue", 0, "diagnostics")).To(ContainSubstring("Postgres"))
			Expect(newPostgresSite(ctx).speak(spoken, "POST", "", bundle).status).To(Equal(http.StatusOK))
		}
	})
})
