package aggregated

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPatientCells(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []any
	}{
		"nothing": {
			spec: `{}`,
			want: []any{"", "", "", "", "", "", ""},
		},
		"the official name, wherever it stands": {
			spec: `{"active":true,"birthDate":"2019-04","gender":"male","name":[{"use":"usual","given":["Rexy"]},{"use":"official","family":"Oak","given":["Rex","the Dog"]}]}`,
			want: []any{"Oak", "Rex the Dog", "", "2019-04", "true", "male", ""},
		},
		"else the first name": {
			spec: `{"active":false,"name":[{"use":"usual","given":["Rexy"]},{"family":"Oak"}]}`,
			want: []any{"", "Rexy", "", "", "false", "", ""},
		},
		"a name that is only a text": {
			spec: `{"name":[{"text":"Rex Oak"}]}`,
			want: []any{"", "Rex Oak", "", "", "", "", ""},
		},
		"an animal, by display, code or text": {
			spec: `{"extension":[{"url":"http://example.org/other","valueString":"x"},{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[
				{"url":"breed","valueCodeableConcept":{"text":"Kelpie","coding":[{"code":"k"}]}},
				{"url":"species","valueCodeableConcept":{"coding":[{"code":"canislf","display":"Dog"}]}}]}]}`,
			want: []any{"", "", "Dog", "", "", "", "Kelpie"},
		},
		"a species without a display": {
			spec: `{"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueCodeableConcept":{"coding":[{"code":"canislf"}]}}]}]}`,
			want: []any{"", "", "canislf", "", "", "", ""},
		},
		"elements of another shape": {
			spec: `{"active":true,"name":"Rex"}`,
			want: []any{"", "", "", "", "", "", ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, patientCells([]byte(test.spec))); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTables holds the rows of every table to its columns.
func TestTables(t *testing.T) {
	for name, table := range tables {
		kind := kindNamed(t, name)
		object := kind.New()
		object.SetSpec([]byte(`{}`))
		object.SetGeneration(1)
		served := &resource{kind: kind, table: table}
		shown, err := served.ConvertToTable(t.Context(), object, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Rows) != 1 || len(shown.Rows[0].Cells) != len(shown.ColumnDefinitions) {
			t.Errorf("%s: the columns are %v, the rows %v", name, shown.ColumnDefinitions, shown.Rows)
		}
		bare, err := served.ConvertToTable(t.Context(), object, &metav1.TableOptions{NoHeaders: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(bare.ColumnDefinitions) != 0 || len(bare.Rows) != 1 {
			t.Errorf("%s without headers: %v", name, bare)
		}
	}
}
