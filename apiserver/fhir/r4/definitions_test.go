package r4

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestElements(t *testing.T) {
	tests := map[string]struct {
		typeName string
		want     ElementDefinition
	}{
		"a primitive": {
			"Patient", ElementDefinition{Name: "birthDate", Base: "birthDate", Type: "date", Primitive: true, Companion: true},
		},
		"a repeated datatype": {
			"Patient", ElementDefinition{Name: "name", Base: "name", Type: "HumanName", Repeated: true},
		},
		"a component": {
			"Patient", ElementDefinition{Name: "contact", Base: "contact", Type: "Patient.contact", Repeated: true},
		},
		"a choice": {
			"Patient", ElementDefinition{Name: "deceasedDateTime", Base: "deceased", Type: "dateTime", Primitive: true, Companion: true},
		},
		"codes": {
			"Patient", ElementDefinition{
				Name: "gender", Base: "gender", Type: "code", Primitive: true, Companion: true,
				Codes: []string{"female", "male", "other", "unknown"},
			},
		},
		"languages, which no list can hold": {
			"Patient", ElementDefinition{Name: "language", Base: "language", Type: "code", Primitive: true, Companion: true},
		},
		"a required reference inside a component": {
			"Patient.link", ElementDefinition{
				Name: "other", Base: "other", Type: "Reference", Required: true, Targets: []string{"Patient", "RelatedPerson"},
			},
		},
		"any resource": {
			"Patient", ElementDefinition{Name: "contained", Base: "contained", Type: "Resource", Repeated: true},
		},
		"an attribute": {
			"Extension", ElementDefinition{Name: "url", Base: "url", Type: "uri", Primitive: true, Required: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, got := range Elements(test.typeName) {
				if got.Name == test.want.Name {
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("%s.%s (-want +got):\n%s", test.typeName, got.Name, diff)
					}
					return
				}
			}
			t.Errorf("%s has no element %s", test.typeName, test.want.Name)
		})
	}
	for _, typeName := range []string{"boolean", "NoSuchType", ""} {
		if got := Elements(typeName); len(got) != 0 {
			t.Errorf("Elements(%q): got %v, want none", typeName, got)
		}
	}
}
