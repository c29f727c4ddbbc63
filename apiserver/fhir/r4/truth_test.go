package r4_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

const bin = "../../../bin"

// TestExtractionIndependently compares the values that the extraction finds in HL7's examples and in
// random resources with those that fhirpath.js finds by HL7's own expressions. It is in this package
// because it uses the package's generator of random resources.
func TestExtractionIndependently(t *testing.T) {
	truth, err := searchtruth.New(t.Context(), absoluteBin(t))
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
		got := byParameter(extract.Values(types[i], resource.Body))
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

// TestSearchParameters compares the parameters of each type with HL7's definitions, the additions and
// the contract.
func TestSearchParameters(t *testing.T) {
	want, err := searchtruth.Parameters(t.Context(), absoluteBin(t))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[r4.SearchKind]string{
		r4.SearchToken: "token", r4.SearchString: "string", r4.SearchReference: "reference", r4.SearchDate: "date",
		r4.SearchURI: "uri", r4.SearchComposite: "composite", r4.SearchSpecial: "special",
	}
	additions, err := searchtruth.Additions(absoluteBin(t))
	if err != nil {
		t.Fatal(err)
	}
	standard := 0
	for _, typ := range r4.Types {
		expected := map[string][]string{"_id": {"token Resource-id"}, "_lastUpdated": {"date Resource-lastUpdated"}}
		for name, p := range want[typ.Name] {
			expected[name] = []string{p.Kind + " " + p.ID}
			isAddition := slices.ContainsFunc(additions, func(a searchtruth.Addition) bool { return a.ID == p.ID })
			if !isAddition && (strings.HasPrefix(p.ID, typ.Name+"-") || strings.HasPrefix(p.ID, "individual-")) {
				standard++
			}
		}
		got := map[string][]string{}
		for _, p := range r4.SearchParameters(typ.Name) {
			got[p.Name] = append(got[p.Name], codes[p.Kind]+" "+strings.TrimPrefix(p.Definition(), "http://hl7.org/fhir/SearchParameter/"))
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got): run go generate ./apiserver/fhir/r4\n%s", typ.Name, diff)
		}
	}
	if standard != 179 {
		t.Errorf("HL7 defines %d parameters of the types, want 179", standard)
	}
}

// checkAllMet makes sure that values of each parameter were compared.
func checkAllMet(t *testing.T, truth *searchtruth.Truth, compared map[string]int) {
	for typ, parameters := range truth.Parameters {
		for name := range parameters {
			if least := 5; compared[typ+" "+name] < least {
				t.Errorf("%s of %s was found in %d resources only", name, typ, compared[typ+" "+name])
			}
		}
	}
}

// byParameter writes entries for comparing: each once, in order.
func byParameter(entries []store.IndexValue) map[string][]string {
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
	additions, err := searchtruth.Additions(absoluteBin(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range additions {
		example := found[slices.IndexFunc(found, func(e examples.Example) bool { return e.Type == a.Base[0] })]
		for _, extensions := range extensionsOf(a) {
			types, bodies = append(types, example.Type), append(bodies, withExtensions(t, example.JSON, extensions))
		}
	}
	return types, bodies
}

// extensionsOf are extensions in which an addition finds values, or finds none because the type of the
// value or a URL is another one.
func extensionsOf(a searchtruth.Addition) (all []string) {
	if a.ValueType() == "" {
		return nil
	}
	elsewhere := a
	elsewhere.Expression = strings.Replace(a.Expression, "extension('", "extension('urn:other:", 1)
	const other = `{"url":"urn:other","valueString":"x"}`
	for fhirType, value := range searchtruth.Samples {
		if fhirType == "code" && a.ValueType() == "string" {
			continue // ofType takes subtypes, too; the tables take the type that the expression names
		}
		here := a.Extension(fhirType, value)
		all = append(all, here, here+","+here, here+","+other, other+","+here, elsewhere.Extension(fhirType, value)+","+here, elsewhere.Extension(fhirType, value))
	}
	return append(all, a.Extension("CodeableConcept", `{"text":"made"}`))
}

// withExtensions returns a resource with the extensions instead of its own.
func withExtensions(t *testing.T, resource []byte, extensions string) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(resource, &members); err != nil {
		t.Fatal(err)
	}
	members["extension"] = json.RawMessage("[" + extensions + "]")
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func absoluteBin(t *testing.T) string {
	full, err := filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
