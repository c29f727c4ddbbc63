package r4_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/examples"
	"github.com/paddock-health/paddock/hack/searchtruth"
)

const bin = "../../../bin"

// TestExtractionIndependently compares what is extracted of HL7's examples and of
// resources made at random with what HL7's own expressions find in them. It is here
// for the sake of the generator.
func TestExtractionIndependently(t *testing.T) {
	truth, err := searchtruth.New(t.Context(), absolute(t, bin))
	if err != nil {
		t.Fatal(err)
	}
	types, bodies := samples(t)
	want, err := truth.Entries(t.Context(), bodies)
	if err != nil {
		t.Fatal(err)
	}
	compared, values := map[string]int{}, 0
	for i, body := range bodies {
		resource, err := r4.Read(body, r4.Options{Type: types[i]})
		if err != nil {
			t.Fatal(err)
		}
		got := byParameter(extract.Entries(types[i], resource.Body))
		delete(got, "") // no expression of a parameter finds a mention
		expected := byParameter(want[i])
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Fatalf("%s: %s\n%s", types[i], diff, body)
		}
		for parameter, entries := range expected {
			compared[types[i]+" "+parameter]++
			values += len(entries)
		}
	}
	t.Logf("%d entries of %d resources", values, len(bodies))
	checkAllMet(t, truth, compared)
}

// checkAllMet makes sure that both know the same parameters, and that each was found.
func checkAllMet(t *testing.T, truth *searchtruth.Truth, compared map[string]int) {
	for _, typ := range r4.Types {
		names := map[string]bool{}
		for _, p := range r4.SearchParameters(typ.Name) {
			if p.Name == "_id" || p.Name == "_lastUpdated" {
				continue
			}
			names[p.Name] = true
			if least := 5; compared[typ.Name+" "+p.Name] < least {
				t.Errorf("%s of %s was found in %d resources only", p.Name, typ.Name, compared[typ.Name+" "+p.Name])
			}
		}
		for name := range truth.Parameters[typ.Name] {
			if !names[name] {
				t.Errorf("%s of %s is unknown", name, typ.Name)
			}
			delete(names, name)
		}
		for name := range names {
			t.Errorf("%s of %s has no expression", name, typ.Name)
		}
	}
}

// byParameter writes entries for comparing: each once, in order.
func byParameter(entries []store.Entry) map[string][]string {
	written := map[string][]string{}
	for _, entry := range entries {
		written[entry.Param] = append(written[entry.Param], fmt.Sprintf("%T%+v", entry.Value, entry.Value))
	}
	for parameter, values := range written {
		slices.Sort(values)
		written[parameter] = slices.Compact(values)
	}
	return written
}

// samples are HL7's examples of the types kept and resources made at random.
func samples(t *testing.T) (types []string, bodies [][]byte) {
	for i, typ := range r4.Types {
		for _, body := range r4.Generate(typ.Name, uint64(700+i), 400) {
			types, bodies = append(types, typ.Name), append(bodies, body)
		}
	}
	for _, body := range animals() {
		types, bodies = append(types, "Patient"), append(bodies, body)
	}
	path, err := examples.Fetch(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	found, err := examples.Load(path, searchtruth.Kept...)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 82 {
		t.Errorf("there are %d examples, want 82", len(found))
	}
	for _, example := range found {
		types, bodies = append(types, example.Type), append(bodies, example.JSON)
	}
	return types, bodies
}

// animals are patients with HL7's extension for animals, or one like it.
func animals() (bodies [][]byte) {
	const extension = `{"url":%q,"extension":[{"url":%q,%s},{"url":"genderStatus","valueCodeableConcept":{"text":"intact"}}]}`
	for _, outer := range []string{"http://hl7.org/fhir/StructureDefinition/patient-animal", "http://example.org/animal"} {
		for _, inner := range []string{"species", "breed", "genderStatus", "colour"} {
			for _, value := range []string{
				`"valueCodeableConcept":{"coding":[{"system":"urn:s","code":"Dog"},{"code":"x","display":"Hündin"}],"text":"Dog"}`,
				`"valueCodeableConcept":{"text":"Dog"}`, `"valueString":"Dog"`, `"valueCoding":{"code":"dog"}`, `"valueBoolean":true`,
			} {
				one := fmt.Sprintf(extension, outer, inner, value)
				bodies = append(bodies,
					fmt.Appendf(nil, `{"resourceType":"Patient","extension":[%s]}`, one),
					fmt.Appendf(nil, `{"resourceType":"Patient","extension":[%s,%s],"active":true}`, one, one))
			}
		}
	}
	return bodies
}

func absolute(t *testing.T, path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
