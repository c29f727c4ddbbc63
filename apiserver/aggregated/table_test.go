package aggregated

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

func TestCells(t *testing.T) {
	const rex = `"extension":[{"url":"http://example.org/other","valueString":"x"},{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[
		{"url":"breed","valueCodeableConcept":{"text":"Kelpie","coding":[{"code":"k"}]}},
		{"url":"species","valueCodeableConcept":{"coding":[{"code":"canislf","display":"Dog"}]}}]}]`
	tests := map[string]struct {
		cell cell
		spec string
		want string
	}{
		"nothing":                                     {one[primitive]("gender"), `{}`, ""},
		"no object":                                   {one[primitive]("gender"), `[]`, ""},
		"a string":                                    {one[primitive]("gender"), `{"gender":"male"}`, "male"},
		"a boolean":                                   {one[primitive]("active"), `{"active":false}`, "false"},
		"a number, to the digit":                      {one[primitive]("quantity"), `{"quantity":25.0}`, "25.0"},
		"an object where a primitive is wanted":       {one[primitive]("gender"), `{"gender":{"male":true}}`, ""},
		"a list where one is wanted":                  {one[primitive]("gender"), `{"gender":["male"]}`, ""},
		"only extensions":                             {one[primitive]("gender"), `{"_gender":{"extension":[{"url":"x","valueString":"y"}]}}`, ""},
		"the family of the official name":             {family, `{"name":[{"use":"usual","family":"Ash"},{"use":"official","family":"Oak"}]}`, "Oak"},
		"the given names of the official name":        {given, `{"name":[{"given":["Rexy"]},{"use":"official","given":["Rex","the Dog"]}]}`, "Rex the Dog"},
		"else those of the first name":                {given, `{"name":[{"use":"usual","given":["Rexy"]},{"family":"Oak"}]}`, "Rexy"},
		"a name that is only a text":                  {given, `{"name":[{"text":"Rex Oak"}]}`, "Rex Oak"},
		"the text of a name that has a family":        {given, `{"name":[{"text":"Rex Oak","family":"Oak"}]}`, ""},
		"given names of which one is only extensions": {given, `{"name":[{"given":[null,"Rex"],"_given":[{"id":"a"},null]}]}`, "Rex"},
		"a whole name by its text":                    {personName, `{"name":[{"text":"Dr. Ana\nSilva","family":"Silva"}]}`, "Dr. Ana Silva"},
		"a whole name by its parts":                   {personName, `{"name":[{"family":"Silva","given":["Ana",null,"Maria"]}]}`, "Ana Maria Silva"},
		"an owner":                                    {owner, `{` + rex + `,"contact":[{"name":{"text":"Vet"}},{"relationship":[{"text":"Owner"}],"name":{"family":"Nguyen","given":["Kim"]}}]}`, "Kim Nguyen"},
		"an organization that owns":                   {owner, `{` + rex + `,"contact":[{"relationship":[{"coding":[{"display":"owner"}]}],"organization":{"display":"Shelter"}}]}`, "Shelter"},
		"the first contact, if none is the owner":     {owner, `{` + rex + `,"contact":[{"telecom":[]},{"name":{"text":"Kim"}}]}`, "Kim"},
		"a contact of a human":                        {owner, `{"contact":[{"relationship":[{"text":"Owner"}],"name":{"text":"Kim"}}]}`, ""},
		"a name that is no list":                      {family, `{"name":"Rex"}`, ""},
		"a concept by text":                           {one[codeableConcept]("code"), `{"code":{"text":"Nurse","coding":[{"display":"RN"}]}}`, "Nurse"},
		"a concept by display":                        {one[codeableConcept]("code"), `{"code":{"coding":[{"code":"rn","display":"RN"}]}}`, "RN"},
		"a concept by code":                           {one[codeableConcept]("code"), `{"code":{"coding":[{"code":"rn"}]}}`, "rn"},
		"the first concept that says something":       {first[codeableConcept]("code"), `{"code":[{"id":"a"},{"text":"Nurse"},{"text":"Vet"}]}`, "Nurse"},
		"all concepts":                                {all[codeableConcept]("code"), `{"code":[{"id":"a"},{"text":"Nurse"},{"text":"Vet"}]}`, "Nurse, Vet"},
		"a reference by display":                      {one[reference]("partOf"), `{"partOf":{"reference":"Organization/oak","display":"Oak Street"}}`, "Oak Street"},
		"a reference by where it leads":               {one[reference]("partOf"), `{"partOf":{"reference":"Organization/oak"}}`, "Organization/oak"},
		"a reference by identifier":                   {one[reference]("partOf"), `{"partOf":{"identifier":{"system":"s","value":"42"}}}`, "42"},
		"a telephone number that is not old":          {contact("phone"), `{"telecom":[{"system":"email","value":"a@b"},{"system":"phone","use":"old","value":"1"},{"system":"phone","value":"2"}]}`, "2"},
		"an address by its parts":                     {one[address]("address"), `{"address":{"line":["1 Oak St","Unit 2"],"city":"Perth","postalCode":"6000"}}`, "1 Oak St, Unit 2, Perth, 6000"},
		"an address by its text, in one line":         {one[address]("address"), `{"address":{"text":"1 Oak St\nPerth","city":"Perth"}}`, "1 Oak St Perth"},
		"the first city":                              {first[city]("address"), `{"address":[{"text":"1 Oak St"},{"city":"Perth"}]}`, "Perth"},
		"a period with an open end":                   {one[period]("period"), `{"period":{"start":"2024"}}`, "2024/.."},
		"a period with an open start":                 {one[period]("period"), `{"period":{"end":"2024"}}`, "../2024"},
		"a period of which nothing is known":          {one[period]("period"), `{"period":{"id":"a"}}`, ""},
		"the first choice":                            {either(one[primitive]("a"), one[primitive]("b")), `{"a":"1","b":"2"}`, "1"},
		"the second choice":                           {either(one[primitive]("a"), one[primitive]("b")), `{"b":"2"}`, "2"},
		"a species by display":                        {animal("species"), `{` + rex + `}`, "Dog"},
		"a breed by text":                             {animal("breed"), `{` + rex + `}`, "Kelpie"},
		"an animal without extensions":                {animal("breed"), `{"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal"}]}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.cell(elementsOf([]byte(test.spec))); got != test.want {
				t.Errorf("cell: got %q, want %q", got, test.want)
			}
		})
	}
}

// TestTables holds the rows of every kind's table to its columns.
func TestTables(t *testing.T) {
	for _, kind := range r4v1.Kinds {
		object := kind.New()
		object.SetSpec([]byte(`{}`))
		object.SetGeneration(1)
		served := &resource{kind: kind, table: tables[kind.Name]}
		shown, err := served.ConvertToTable(t.Context(), object, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Rows) != 1 || len(shown.Rows[0].Cells) != len(shown.ColumnDefinitions) || len(shown.ColumnDefinitions) < 7 {
			t.Errorf("%s: the columns are %v, the rows %v", kind.Name, shown.ColumnDefinitions, shown.Rows)
		}
		names := map[string]bool{}
		for _, column := range shown.ColumnDefinitions {
			if names[column.Name] || column.Description == "" {
				t.Errorf("%s: the column %s is there twice, or without a description", kind.Name, column.Name)
			}
			names[column.Name] = true
		}
		bare, err := served.ConvertToTable(t.Context(), object, &metav1.TableOptions{NoHeaders: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(bare.ColumnDefinitions) != 0 || len(bare.Rows) != 1 {
			t.Errorf("%s without headers: %v", kind.Name, bare)
		}
	}
}

// loadExamples returns HL7's examples of the kinds, in order.
func loadExamples(t *testing.T) []examples.Example {
	t.Helper()
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kind := range r4v1.Kinds {
		names = append(names, kind.Name)
	}
	all, err := examples.Load(path, names...)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b examples.Example) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// TestTablesOfExamples shows HL7's examples as tables.
// UPDATE_GOLDEN=1 writes what they come to.
func TestTablesOfExamples(t *testing.T) {
	var shown bytes.Buffer
	writer := tabwriter.NewWriter(&shown, 0, 0, 2, ' ', 0)
	kind := ""
	for _, example := range loadExamples(t) {
		if example.Type != kind {
			kind = example.Type
			fmt.Fprintf(writer, "\n%s", kind)
			for _, column := range tables[kind] {
				fmt.Fprintf(writer, "\t%s", column.name)
			}
			fmt.Fprintln(writer)
		}
		fmt.Fprint(writer, example.ID)
		for _, cell := range tables[kind].cells(example.JSON) {
			fmt.Fprintf(writer, "\t%v", cmp.Or(cell, any("-")))
		}
		fmt.Fprintln(writer)
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "tables.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, shown.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), shown.String()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

// TestTablesOfOtherShapes puts values of every shape in the place of each element of
// HL7's examples: that empties the cells that show it, and leaves the others alone.
func TestTablesOfOtherShapes(t *testing.T) {
	shapes := []string{`null`, `true`, `-1.50`, `"x"`, `{}`, `[]`, `[null]`, `["x"]`, `[[]]`, `[{"x":1}]`, `{"x":[{}]}`}
	for _, example := range loadExamples(t) {
		var resource map[string]json.RawMessage
		if err := json.Unmarshal(example.JSON, &resource); err != nil {
			t.Fatal(err)
		}
		before := tables[example.Type].cells(example.JSON)
		for name, value := range resource {
			without := cellsWith(t, example.Type, resource, name, nil)
			for _, shape := range shapes {
				after := cellsWith(t, example.Type, resource, name, []byte(shape))
				for i, column := range tables[example.Type] {
					if without[i] == before[i] && before[i] != "" && after[i] != before[i] {
						t.Errorf("%s/%s with %s %s: %s is %q instead of %q", example.Type, example.ID, name, shape, column.name, after[i], before[i])
					}
				}
			}
			resource[name] = value
		}
	}
}

// cellsWith are the cells of a resource with another value of one element; nil: without it.
func cellsWith(t *testing.T, kind string, resource map[string]json.RawMessage, name string, value json.RawMessage) []any {
	t.Helper()
	delete(resource, name)
	if value != nil {
		resource[name] = value
	}
	changed, err := json.Marshal(resource)
	if err != nil {
		t.Fatal(err)
	}
	return tables[kind].cells(changed)
}
