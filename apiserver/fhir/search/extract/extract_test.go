package extract

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// noDeath is what every Patient has.
var noDeath = store.IndexValue{Param: "deceased", Value: store.Token{System: specialValues, Code: "false"}}

func token(param, system, code string) store.IndexValue {
	return store.IndexValue{Param: param, Value: store.Token{System: system, Code: code}}
}

func text(param, folded, original string) store.IndexValue {
	return store.IndexValue{Param: param, Value: store.Text{Folded: folded, Original: original}}
}

func refers(param, base, typ, id string) store.IndexValue {
	return store.IndexValue{Param: param, Value: store.Reference{Base: base, Type: typ, ID: id}}
}

func mentions(base, typ, id string) store.IndexValue {
	return store.IndexValue{Value: store.Mention{Base: base, Type: typ, ID: id}}
}

func nothing(param string) store.IndexValue { return store.IndexValue{Param: param} }

func micros(t *testing.T, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func TestEntries(t *testing.T) {
	const gender, use = "http://hl7.org/fhir/administrative-gender", "http://hl7.org/fhir/address-use"
	tests := map[string]struct {
		typ, members string
		want         []store.IndexValue
	}{
		"unknown type": {typ: "Animal"},
		"identifiers": {
			"Device", `"identifier":[{"system":"urn:a","value":"AbC","type":{"text":"Tag No.","coding":[{"system":"urn:t","code":"MR"},{"code":"x"},{"system":"urn:t"}]}},{"value":"1"},{"system":"urn:b"},{"use":"old"}]`,
			[]store.IndexValue{
				token("identifier", "urn:a", "abc"), text("identifier:text", "tag no.", "Tag No."),
				token("identifier:of-type", "urn:t", "mr|abc"), token("identifier:of-type", "", "x|abc"),
				token("identifier", "", "1"), token("identifier", "urn:b", ""), nothing("identifier"),
			},
		},
		"concepts": {
			"Location", `"type":[{"coding":[{"system":"urn:s","code":"C","display":"Café"},{"display":"only"}],"text":" T "},{"text":"none"}],"operationalStatus":{"system":"urn:o","code":"O"}`,
			[]store.IndexValue{
				token("type", "urn:s", "c"), text("type:text", "cafe", "Café"), text("type:text", "only", "only"), text("type:text", "t", " T "),
				text("type:text", "none", "none"), nothing("type"), token("operational-status", "urn:o", "o"),
			},
		},
		"codes and booleans": {
			"Patient", `"active":true,"gender":"male","address":[{"use":"home"}],"deceasedBoolean":true`,
			[]store.IndexValue{
				token("active", specialValues, "true"), token("gender", gender, "male"), token("address-use", use, "home"),
				nothing("address"), token("deceased", specialValues, "true"),
			},
		},
		"contact points": {
			"Practitioner", `"telecom":[{"system":"phone","value":"+1 A"},{"value":"x"},{"use":"home"}]`,
			[]store.IndexValue{token("telecom", "phone", "+1 a"), token("phone", "phone", "+1 a"), token("telecom", "", "x"), nothing("telecom")},
		},
		"names": {
			"Practitioner", `"name":[{"use":"usual","text":"Dr. Zoë Smith","family":"Smith","given":["Zoë",null],"_given":[null,{"id":"x"}],"prefix":["Dr."],"suffix":["Jr"]},{"use":"old"},{"text":" "}]`,
			[]store.IndexValue{
				text("name", "dr. zoe smith", "Dr. Zoë Smith"), text("phonetic", "TR", "TR"), text("phonetic", "S", "S"), text("phonetic", "SM0", "SM0"),
				text("phonetic", "XMT", "XMT"), text("name", "smith", "Smith"), text("family", "smith", "Smith"), text("name", "zoe", "Zoë"),
				text("given", "zoe", "Zoë"), text("name", "dr.", "Dr."), text("name", "jr", "Jr"), text("phonetic", "JR", "JR"), text("phonetic", "AR", "AR"),
				nothing("name"), nothing("phonetic"),
			},
		},
		"addresses": {
			"Location", `"name":"L","alias":["ALIAS"],"address":{"text":"T","line":["1 High St"],"city":"C","district":"D","state":"S","postalCode":"P","country":"X"}`,
			[]store.IndexValue{
				text("name", "l", "L"), text("name", "alias", "ALIAS"), text("address", "t", "T"), text("address", "1 high st", "1 High St"),
				text("address", "c", "C"), text("address-city", "c", "C"), text("address", "d", "D"), text("address", "s", "S"), text("address-state", "s", "S"),
				text("address", "p", "P"), text("address-postalcode", "p", "P"), text("address", "x", "X"), text("address-country", "x", "X"),
			},
		},
		"references": {
			"Person", `"link":[{"target":{"reference":"Practitioner/A/_history/2"}},{"target":{"reference":"https://h.example/fhir/Patient/b"}},{"target":{"reference":"urn:uuid:9d6a5ac9-43a8-4b5b-b0c5-1e8a6e6b1f0a"}},{"target":{"type":"Patient","identifier":{"system":"urn:i","value":"V"}}},{"target":{"reference":"#c"}}]`,
			[]store.IndexValue{
				refers("link", "", "Practitioner", "a"), refers("practitioner", "", "Practitioner", "a"),
				refers("link", "https://h.example/fhir", "Patient", "b"), refers("patient", "https://h.example/fhir", "Patient", "b"),
				refers("link", "urn:uuid:9d6a5ac9-43a8-4b5b-b0c5-1e8a6e6b1f0a", "", ""),
				token("link:identifier", "urn:i", "v"), nothing("link"), token("patient:identifier", "urn:i", "v"), nothing("patient"),
			},
		},
		"mentions": {
			"Patient", `"contained":[{"resourceType":"Patient","id":"c","generalPractitioner":[{"reference":"Practitioner/P"},{"reference":"Medication/1"}],"link":[{"other":{"reference":"#"},"type":"refer"}]}],"managingOrganization":{"reference":"Organization/1"},"contact":[{"organization":{"reference":"Organization/1/_history/3"}},{"organization":{"reference":"Organization/2"}},{"organization":{"reference":"https://h.example/fhir/organization/2"}},{"organization":{"reference":"urn:uuid:9d6a5ac9-43a8-4b5b-b0c5-1e8a6e6b1f0a"}}]`,
			[]store.IndexValue{
				noDeath, refers("organization", "", "Organization", "1"), mentions("", "Practitioner", "p"),
				mentions("", "Organization", "2"), mentions("https://h.example/fhir", "Organization", "2"),
			},
		},
		"segments in addresses": {
			"PractitionerRole", `"organization":{"reference":"https://h.example/fhir/organization/A/_history/1"},"location":[{"reference":"https://h.example/fhir/medication/1"}]`,
			[]store.IndexValue{
				refers("organization", "https://h.example/fhir", "Organization", "a"),
				refers("location", "https://h.example/fhir/medication/1", "", ""),
			},
		},
		"dates": {
			"Patient", `"birthDate":"2020-02","deceasedDateTime":"2021-01-01T00:00:00+01:00"`,
			[]store.IndexValue{
				{Param: "birthdate", Value: store.Period{From: micros(t, "2020-02-01T00:00:00Z"), Until: micros(t, "2020-03-01T00:00:00Z")}},
				{Param: "death-date", Value: store.Period{From: micros(t, "2020-12-31T23:00:00Z"), Until: micros(t, "2020-12-31T23:00:01Z")}},
				token("deceased", specialValues, "true"),
			},
		},
		"open periods":      {"PractitionerRole", `"period":{"start":"2020"}`, []store.IndexValue{{Param: "date", Value: store.Period{From: micros(t, "2020-01-01T00:00:00Z"), Until: store.TheEnd}}}},
		"ended periods":     {"PractitionerRole", `"period":{"end":"2020"}`, []store.IndexValue{{Param: "date", Value: store.Period{From: store.TheBeginning, Until: micros(t, "2021-01-01T00:00:00Z")}}}},
		"periods of none":   {"PractitionerRole", `"period":{"id":"x","extension":[{"url":"u","valueBoolean":true}]}`, []store.IndexValue{nothing("date")}},
		"undecided periods": {"PractitionerRole", `"period":{"start":"2020-01-01T23:00:00-05:00","end":"2020-01-01"}`, []store.IndexValue{{Param: "date", Value: store.Period{From: micros(t, "2020-01-02T04:00:00Z"), Until: micros(t, "2020-01-02T04:00:00Z") + 1}}}},
		"characteristics": {
			"Group", `"type":"animal","actual":true,"characteristic":[{"code":{"coding":[{"code":"A"},{"code":"b"}],"text":"t"},"valueCodeableConcept":{"coding":[{"system":"s","code":"V"}]},"exclude":false},{"code":{"text":"u"},"valueBoolean":true,"exclude":true},{"code":{"coding":[{"code":"q"}]},"valueQuantity":{"value":1},"exclude":true}]`,
			[]store.IndexValue{
				token("type", "http://hl7.org/fhir/group-type", "animal"), token("actual", specialValues, "true"),
				token("characteristic", "", "a"), token("characteristic", "", "b"), text("characteristic:text", "t", "t"),
				token("value", "s", "v"), token("exclude", specialValues, "false"),
				{Param: "characteristic-value", Value: store.Pair{First: store.Token{Code: "a"}, Second: store.Token{System: "s", Code: "v"}}},
				{Param: "characteristic-value", Value: store.Pair{First: store.Token{Code: "b"}, Second: store.Token{System: "s", Code: "v"}}},
				text("characteristic:text", "u", "u"), nothing("characteristic"), token("value", specialValues, "true"), token("exclude", specialValues, "true"),
				nothing("characteristic-value"), token("characteristic", "", "q"),
			},
		},
		"positions":              {"Location", `"position":{"longitude":-83.69471,"latitude":42.2565000}`, []store.IndexValue{{Param: "near", Value: store.Point{Latitude: 42.2565, Longitude: -83.69471}}}},
		"not on the earth":       {"Location", `"position":{"longitude":-83.69471,"latitude":91}`, []store.IndexValue{nothing("near")}},
		"out of all bounds":      {"Location", `"position":{"longitude":1e400,"latitude":1}`, []store.IndexValue{nothing("near")}},
		"uris":                   {"Device", `"url":"http://x/Y","meta":{"profile":["http://p|1"],"source":"urn:S","tag":[{"system":"t","code":"T"}],"security":[{"code":"R","display":"restricted"}]}`, []store.IndexValue{text("url", "http://x/Y", "http://x/Y"), text("_profile", "http://p|1", "http://p|1"), text("_source", "urn:S", "urn:S"), token("_tag", "t", "t"), token("_security", "", "r"), text("_security:text", "restricted", "restricted")}},
		"escapes":                {"Device", `"\u0073tatus":"\u0061ctive","manufacturer":"A\u0042\n\"C\""`, []store.IndexValue{token("status", "http://hl7.org/fhir/device-status", "active"), text("manufacturer", `ab "c"`, "AB\n\"C\"")}},
		"each value once":        {"Device", `"meta":{"tag":[{"code":"T"},{"code":"t"}]}`, []store.IndexValue{token("_tag", "", "t")}},
		"animals":                {"Patient", `"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueCodeableConcept":{"coding":[{"code":"canislf"}]}}]}]`, []store.IndexValue{token("species", "", "canislf"), noDeath}},
		"what is contained":      {"Patient", `"contained":[{"resourceType":"Patient","active":true}]`, []store.IndexValue{noDeath}},
		"primitives of no value": {"Patient", `"_birthDate":{"extension":[{"url":"u","valueBoolean":true}]}`, []store.IndexValue{noDeath}},
	}
	expected := map[string]bool{}
	for _, test := range tests {
		for _, value := range test.want {
			expected[value.Param] = true
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Values(test.typ, []byte(`{"resourceType":"`+test.typ+`",`+test.members+`}`))
			// A parameter that no test expects is another one for the same element.
			got = slices.DeleteFunc(got, func(value store.IndexValue) bool { return !expected[value.Param] })
			if diff := cmp.Diff(asSet(test.want), asSet(got)); diff != "" || len(got) != len(test.want) {
				t.Errorf("%d entries, want %d: %s", len(got), len(test.want), diff)
			}
		})
	}
}

func asSet(values []store.IndexValue) map[string]bool {
	set := map[string]bool{}
	for _, entry := range values {
		set[fmt.Sprintf("%s %T %+v", entry.Param, entry.Value, entry.Value)] = true
	}
	return set
}

// TestManyEntries shows that duplicates are removed above linearLimit as they are below it.
func TestManyEntries(t *testing.T) {
	var members []string
	for i := range 3000 {
		members = append(members, fmt.Sprintf(`{"entity":{"reference":"Patient/%d"}}`, i%1000))
	}
	body := `{"resourceType":"Group","type":"person","actual":true,"member":[` + strings.Join(members, ",") + `]}`
	if got, want := len(Values("Group", []byte(body))), 2+2*1000; got != want {
		t.Errorf("there are %d entries, want %d", got, want)
	}
}

// TestManyPairs shows that a Group has at most maxPairs pairs of codes and values.
func TestManyPairs(t *testing.T) {
	concept := func(codes string) string {
		var codings []string
		for i := range 1000 {
			codings = append(codings, fmt.Sprintf(`{"code":"%s%d"}`, codes, i))
		}
		return `{"coding":[` + strings.Join(codings, ",") + `]}`
	}
	characteristic := `{"code":` + concept("a") + `,"valueCodeableConcept":` + concept("b") + `,"exclude":false}`
	body := `{"resourceType":"Group","type":"person","actual":true,"characteristic":[` + characteristic + `,` + characteristic + `]}`
	pairs := 0
	for _, entry := range Values("Group", []byte(body)) {
		if _, is := entry.Value.(store.Pair); is {
			pairs++
		}
	}
	if pairs != maxPairs {
		t.Errorf("there are %d pairs, want %d", pairs, maxPairs)
	}
}

func BenchmarkEntries(b *testing.B) {
	for _, name := range []string{"patient-1k.json", "patient-2.5k.json"} {
		body, err := os.ReadFile("../../r4/testdata/" + name)
		if err != nil {
			b.Fatal(err)
		}
		stored, err := r4.Read(body, r4.Options{Type: "Patient"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(Values("Patient", stored.Body)) < 10 {
					b.Fatal("too few entries")
				}
			}
		})
	}
}
