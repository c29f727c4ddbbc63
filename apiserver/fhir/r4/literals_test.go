package r4_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

func TestLiterals(t *testing.T) {
	tests := map[string]struct {
		typ, members string
		want         []r4.Literal
	}{
		"none": {"Patient", `"managingOrganization":{"display":"x"}`, nil},
		"elements": {
			"Patient", `"managingOrganization":{"reference":"Organization/1"},"generalPractitioner":[{"display":"x"},{"reference":"Practitioner/A/_history/2"}]`,
			[]r4.Literal{{"Organization/1", "Patient.managingOrganization.reference"}, {"Practitioner/A/_history/2", "Patient.generalPractitioner[1].reference"}},
		},
		"choices": {
			"DeviceDefinition", `"manufacturerReference":{"reference":"Organization/1"},"extension":[{"url":"u","valueReference":{"reference":"Patient/1"}}]`,
			[]r4.Literal{{"Organization/1", "DeviceDefinition.manufacturer.ofType(Reference).reference"}, {"Patient/1", "DeviceDefinition.extension[0].value.ofType(Reference).reference"}},
		},
		"deep down": {
			"Practitioner", `"identifier":[{"value":"v","assigner":{"reference":"Organization/1"}}],"qualification":[{"code":{"text":"c"},"issuer":{"reference":"Organization/2"}}]`,
			[]r4.Literal{{"Organization/1", "Practitioner.identifier[0].assigner.reference"}, {"Organization/2", "Practitioner.qualification[0].issuer.reference"}},
		},
		"in extensions of a primitive": {
			"Patient", `"birthDate":"2020","_birthDate":{"extension":[{"url":"u","valueReference":{"reference":"Location/1"}}]}`,
			[]r4.Literal{{"Location/1", "Patient.birthDate.extension[0].value.ofType(Reference).reference"}},
		},
		"of and in what is contained": {
			"Patient", `"contained":[{"resourceType":"Encounter","id":"e","status":"planned","class":{"code":"c"},"reasonReference":[{"reference":"Condition/1"}],"subject":{"reference":"#"}}],"generalPractitioner":[{"reference":"#p"}]`,
			[]r4.Literal{{"Condition/1", "Patient.contained[0].reasonReference[0].reference"}},
		},
		"of any form": {
			"Group", `"member":[{"entity":{"reference":"https://h.example/fhir/patient/1"}},{"entity":{"reference":"urn:uuid:9d6a5ac9-43a8-4b5b-b0c5-1e8a6e6b1f0a"}},{"entity":{"\u0072eference":"Patient\/2"}}]`,
			[]r4.Literal{
				{"https://h.example/fhir/patient/1", "Group.member[0].entity.reference"},
				{"urn:uuid:9d6a5ac9-43a8-4b5b-b0c5-1e8a6e6b1f0a", "Group.member[1].entity.reference"},
				{"Patient/2", "Group.member[2].entity.reference"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := r4.Literals([]byte(`{"resourceType":"`+test.typ+`","id":"","meta":{},`+test.members+`}`), test.typ)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLiteralsOfMany looks for the references of many resources in the plainest way.
func TestLiteralsOfMany(t *testing.T) {
	types, bodies := samples(t)
	found := 0
	for i, body := range bodies {
		resource, err := r4.Read(body, r4.Options{Type: types[i]})
		if err != nil {
			t.Fatal(err)
		}
		found += checkLiterals(t, types[i], resource.Body)
	}
	if found < 5000 {
		t.Errorf("there are only %d literal references in %d resources", found, len(bodies))
	}
}

// FuzzLiterals checks that no literal reference is missed, of whatever is taken, and that
// each is in the entries of the record.
func FuzzLiterals(f *testing.F) {
	path, err := examples.Fetch(f.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		f.Fatal(err)
	}
	found, err := examples.Load(path, searchtruth.Kept...)
	if err != nil {
		f.Fatal(err)
	}
	for _, example := range found {
		if len(example.JSON) < 2000 {
			f.Add(example.Type, example.JSON)
		}
	}
	f.Fuzz(func(t *testing.T, typ string, body []byte) {
		resource, err := r4.Read(body, r4.Options{Type: typ})
		if err != nil {
			r4.Literals(body, typ) // must not panic all the same
			return
		}
		if checkLiterals(t, typ, resource.Body); t.Failed() {
			t.Logf("%s", body)
		}
	})
}

// checkLiterals compares what is found with what looks like it, and follows the paths.
func checkLiterals(t *testing.T, typ string, body []byte) (found int) {
	t.Helper()
	var content any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // which may be beyond all of Go's
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	eachReference(content, "", func(reference string) { want = append(want, reference) })
	literals := r4.Literals(body, typ)
	for _, literal := range literals {
		got = append(got, literal.Reference)
		if at := follow(content, literal.Expression); at != literal.Reference {
			t.Errorf("%s is %v, want %q", literal.Expression, at, literal.Reference)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("references of a %s: %s", typ, diff)
	}
	checkEntries(t, typ, body, literals)
	return len(got)
}

// eachReference visits the references of all objects that look like a Reference. Those
// of Immunization.education may, and are URIs.
func eachReference(content any, within string, visit func(string)) {
	switch content := content.(type) {
	case map[string]any:
		text, ok := content["reference"].(string)
		ok = ok && within != "education"
		for name, value := range content {
			ok = ok && slices.Contains([]string{"id", "extension", "reference", "type", "identifier", "display"}, strings.TrimPrefix(name, "_"))
			eachReference(value, name, visit)
		}
		if ok && !strings.HasPrefix(text, "#") {
			visit(text)
		}
	case []any:
		for _, value := range content {
			eachReference(value, within, visit)
		}
	}
}

// steps are a path's: the type of a choice, a name, an index.
var steps = regexp.MustCompile("\\.(?:ofType\\((\\w+)\\)|(\\w+)|`(\\w+)`)|\\[(\\d+)\\]")

// follow evaluates a FHIRPath of the kind that issues have. What a primitive has besides
// its value is in its primitive extension.
func follow(content any, expression string) any {
	value, extension := content, any(nil)
	var parent map[string]any
	var name string
	for _, step := range steps.FindAllStringSubmatch(expression, -1) {
		switch choice, index := step[1], step[4]; {
		case choice != "":
			value, extension = parent[name+choice], parent["_"+name+choice]
		case index != "":
			n, _ := strconv.Atoi(index)
			value, extension = item(value, n), item(extension, n)
		default:
			name = cmp.Or(step[2], step[3])
			var isObject bool
			if parent, isObject = value.(map[string]any); !isObject {
				parent, _ = extension.(map[string]any)
			}
			value, extension = parent[name], parent["_"+name]
		}
	}
	return value
}

func item(list any, n int) any {
	if items, _ := list.([]any); n < len(items) {
		return items[n]
	}
	return nil
}

// checkEntries checks that the entries of a record have all references of a site's own.
func checkEntries(t *testing.T, typ string, body []byte, literals []r4.Literal) {
	t.Helper()
	if _, kept := r4.TypeOf(typ); !kept {
		return
	}
	known := map[store.Reference]int{}
	for _, entry := range extract.Values(typ, body) {
		switch value := entry.Value.(type) {
		case store.Reference:
			known[value]++
		case store.Mention:
			if known[store.Reference(value)]++; known[store.Reference(value)] > 1 {
				t.Errorf("%+v is mentioned, and is there besides", value)
			}
		}
	}
	for _, literal := range literals {
		base, name, id, ok := r4.SplitAddress(literal.Reference)
		if ok && known[store.Reference{Base: base, Type: name, ID: strings.ToLower(id)}] == 0 {
			t.Errorf("%s has no entry", literal.Reference)
		}
	}
}
