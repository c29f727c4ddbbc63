package r4

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/dev/examples"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

func TestIndex(t *testing.T) {
	const animal = `"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[` +
		`{"url":"species","valueCodeableConcept":{"text":"dog"}},{"valueCodeableConcept":{"text":"intact"},"url":"genderStatus"}]}]`
	tests := map[string]struct {
		typ, body string
		want      map[string][]string
	}{
		"nothing": {"Patient", `{"resourceType":"Patient"}`, map[string][]string{"deceased": {"boolean false"}}},
		"of many kinds": {
			"Patient", `{"resourceType":"Patient","active":true,"telecom":[{"value":"1","system":"phone"},{"system":"email","value":"a@b"}],"deceasedDateTime":"2020","meta":{"versionId":"1","tag":[{"code":"t"}]}}`,
			map[string][]string{
				"active": {"boolean true"}, "deceased": {"boolean true"}, "death-date": {`dateTime "2020"`},
				"telecom": {`ContactPoint {"value":"1","system":"phone"}`, `ContactPoint {"system":"email","value":"a@b"}`},
				"phone":   {`ContactPoint {"value":"1","system":"phone"}`},
				"email":   {`ContactPoint {"system":"email","value":"a@b"}`},
				"_tag":    {`Coding {"code":"t"}`},
			},
		},
		"not of contained resources": {
			"Patient", `{"resourceType":"Patient","contained":[{"resourceType":"Patient","active":true,"link":[{"other":{"reference":"#"},"type":"refer"}]}]}`,
			map[string][]string{"deceased": {"boolean false"}},
		},
		"animals": {
			"Patient", `{"resourceType":"Patient",` + animal + `}`,
			map[string][]string{"deceased": {"boolean false"}, "species": {`CodeableConcept {"text":"dog"}`}, "gender-status": {`CodeableConcept {"text":"intact"}`}},
		},
		"by what is referred to": {
			"Person", `{"resourceType":"Person","link":[{"target":{"reference":"Practitioner/1"}},{"target":{"reference":"https://h.example/Patient/2"}},{"target":{"type":"Patient","display":"x"}}]}`,
			map[string][]string{
				"link":         {`Reference {"reference":"Practitioner/1"}`, `Reference {"reference":"https://h.example/Patient/2"}`, `Reference {"type":"Patient","display":"x"}`},
				"practitioner": {`Reference {"reference":"Practitioner/1"}`},
				"patient":      {`Reference {"reference":"https://h.example/Patient/2"}`, `Reference {"type":"Patient","display":"x"}`},
			},
		},
		"what the contract adds": {
			"Endpoint", `{"resourceType":"Endpoint","status":"active","connectionType":{"code":"c"},"payloadType":[{"text":"p"}],"address":"a","contact":[{"system":"phone","value":"1"}]}`,
			map[string][]string{
				"status": {`code "active"`}, "connection-type": {`Coding {"code":"c"}`}, "payload-type": {`CodeableConcept {"text":"p"}`},
				"telecom": {`ContactPoint {"system":"phone","value":"1"}`},
			},
		},
		"deceased or not: unknown": {
			"Patient", `{"resourceType":"Patient","_deceasedBoolean":{"extension":[{"url":"u","valueString":"x"}]}}`, map[string][]string{},
		},
		"deceased with an extension": {
			"Patient", `{"resourceType":"Patient","deceasedBoolean":false,"_deceasedBoolean":{"extension":[{"url":"u","valueString":"x"}]}}`,
			map[string][]string{"deceased": {"boolean false"}},
		},
		"what no parameter finds": {
			"Patient", `{"resourceType":"Patient","managingOrganization":{"reference":"Organization/1"},"contact":[{"organization":{"reference":"Organization/2"}},{"organization":{"display":"x"}}],` +
				`"identifier":[{"value":"v","assigner":{"reference":"Organization/3","extension":[{"url":"u","valueReference":{"reference":"Patient/4"}}]}}],` +
				`"contained":[{"resourceType":"Patient","id":"c","generalPractitioner":[{"reference":"#"},{"reference":"Practitioner/5"}]}]}`,
			map[string][]string{
				"deceased": {"boolean false"}, "organization": {`Reference {"reference":"Organization/1"}`},
				"identifier": {`Identifier {"value":"v","assigner":{"reference":"Organization/3","extension":[{"url":"u","valueReference":{"reference":"Patient/4"}}]}}`},
				"": {
					`Reference {"reference":"Organization/2"}`, `Reference {"reference":"Patient/4"}`,
					`Reference {"reference":"Organization/3","extension":[{"url":"u","valueReference":{"reference":"Patient/4"}}]}`, `Reference {"reference":"Practitioner/5"}`,
				},
			},
		},
		"in extensions of animals": {
			"Patient", `{"resourceType":"Patient","extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueReference":{"reference":"Organization/1"}}]},{"url":"x","valueReference":{"reference":"Organization/2"}}]}`,
			map[string][]string{"deceased": {"boolean false"}, "": {`Reference {"reference":"Organization/1"}`, `Reference {"reference":"Organization/2"}`}},
		},
		"as it is stored": {
			"Device", `{"resourceType":"Device","id":"","meta":{},"udiCarrier":[{"deviceIdentifier":"d"}]}`,
			map[string][]string{"udi-di": {`string "d"`}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for _, v := range Index([]byte(test.body), test.typ) {
				name := ""
				if p := v.Parameter(); p != nil {
					name = p.Name
				}
				got[name] = append(got[name], v.Type()+" "+string(v.JSON([]byte(test.body))))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// expressions are HL7's for the parameters of a type.
type expressions map[string]string

// What an engine without a server cannot evaluate, and what it takes for one value
// only: of the references that are made up here, the text tells the type, and ofType
// is what R4 means by as.
var (
	resolves = regexp.MustCompile(`where\(resolve\(\) is (\w+)\)`)
	asTypes  = regexp.MustCompile(`\(([\w.]+) as (\w+)\)`)
)

// TestIndexIndependently compares what is indexed of HL7's examples and of resources
// made at random with what another FHIRPath engine makes of HL7's expressions.
func TestIndexIndependently(t *testing.T) {
	byType := loadExpressions(t)
	samples := makeIndexSamples(t)
	var input [][]byte
	for _, s := range samples {
		own := byType[s.typ]
		names := slices.Sorted(maps.Keys(own))
		list := make([]string, len(names))
		for i, name := range names {
			list[i] = own[name]
		}
		line, err := json.Marshal([]any{list, s.body})
		if err != nil {
			t.Fatal(err)
		}
		input = append(input, line)
	}
	compared := 0
	for i, line := range runTool(t, "extract.mjs", input) {
		s := samples[i]
		var values [][]json.RawMessage
		if err := json.Unmarshal(line, &values); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, v := range Index([]byte(s.body), s.typ) {
			if v.Parameter() == nil {
				continue
			}
			name := v.Parameter().Name
			got[name] = append(got[name], canonical(t, v.JSON([]byte(s.body))))
		}
		for j, name := range slices.Sorted(maps.Keys(byType[s.typ])) {
			var want []string
			for _, v := range values[j] {
				want = append(want, canonical(t, v))
			}
			compared += len(want)
			if diff := cmp.Diff(asSet(want), asSet(got[name])); diff != "" {
				t.Errorf("%s of %s: %s\n%s", name, s.typ, diff, s.body)
			}
		}
	}
	t.Logf("%d values of %d resources", compared, len(samples))
}

// asSet is in order and has no value twice: a union in FHIRPath has none either.
func asSet(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// canonical writes JSON in one way; how numbers are written is not compared.
func canonical(t *testing.T, text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`:-?[0-9][-+.0-9eE]*|:null`).ReplaceAllString(string(written), ":0")
}

func loadExpressions(t *testing.T) map[string]expressions {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	byType := map[string]expressions{}
	for _, typ := range Types {
		byType[typ.Name] = expressions{}
	}
	err = examples.Walk(path, func(name string, text []byte) error {
		if !strings.HasPrefix(name, "SearchParameter-") || strings.Contains(name, "-extensions-") {
			return nil
		}
		var p struct {
			ID, Code, Expression string
			Base                 []string
		}
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		for _, base := range p.Base {
			if own := byType[base]; own != nil && p.ID != "example-extension" {
				text := resolves.ReplaceAllString(p.Expression, `where(type = '$1' or reference.contains('$1/'))`)
				own[p.Code] = asTypes.ReplaceAllString(text, `$1.ofType($2)`)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range byType {
		for _, name := range []string{"tag", "security", "profile", "source"} {
			own["_"+name] = "Resource.meta." + name
		}
	}
	return byType
}

func makeIndexSamples(t *testing.T) (samples []sample) {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, typ := range Types {
		names = append(names, typ.Name)
		g := newGenerator(uint64(500 + i))
		for range 60 {
			samples = append(samples, sample{typ: typ.Name, body: string(g.generate(typ.Name))})
		}
	}
	found, err := examples.Load(path, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range found {
		samples = append(samples, sample{typ: example.Type, body: string(example.JSON)})
	}
	return samples
}

// TestSystemOfCodes compares the code systems of all parameters with those of the independent
// extraction.
func TestSystemOfCodes(t *testing.T) {
	found := 0
	for _, typ := range Types {
		for _, p := range SearchParameters(typ.Name) {
			if got, want := p.System(), searchtruth.CodeSystem(typ.Name, p.Name); got != want {
				t.Errorf("%s %s: system %q, want %q", typ.Name, p.Name, got, want)
			} else if got != "" {
				found++
			}
		}
	}
	if found < 10 {
		t.Errorf("%d parameters have a system", found)
	}
}
