package fhir

import (
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// TestSuggestions checks that messages about unknown names end with the name that was meant, or with
// all names.
func TestSuggestions(t *testing.T) {
	unknownElement := func(text string) error {
		_, err := r4.Read([]byte(text), r4.Options{Type: "Patient"})
		return err
	}
	tests := map[string]struct {
		err  error
		want string
	}{
		"a type":                  {&typeUnknownError{"patiant"}, `"patiant" is not a supported resource type; did you mean patient?`},
		"a type in capitals":      {&typeUnknownError{"Practitionr"}, `; did you mean Practitioner?`},
		"another type":            {&typeUnknownError{"Observation"}, `; supported types: device, device-definition`},
		"an operation":            {&operationUnknownError{name: "$evrything"}, `the operation "$evrything" is not supported at this path; did you mean $everything? Supported operations: `},
		"an operation elsewhere":  {&operationUnknownError{name: "$export"}, `the operation "$export" is not supported at this path; supported operations: `},
		"a parameter of metadata": {rejectUnknownParameters(url.Values{"_summry": {"true"}}, "_summary"), `is not supported; did you mean _summary?`},
		"another parameter":       {rejectUnknownParameters(url.Values{"x": {"1"}}, "mode"), `is not supported; supported parameters: mode, _format, _pretty`},
		"an element":              {unknownElement(`{"resourceType":"Patient","birthdate":"2021"}`), `Patient has no element "birthdate"; did you mean birthDate?`},
		"an element of a part":    {unknownElement(`{"resourceType":"Patient","name":[{"famly":"Lind"}]}`), `HumanName has no element "famly"; did you mean family?`},
		"an element of STU3":      {unknownElement(`{"resourceType":"Patient","animal":{"species":{"text":"Dog"}}}`), `R4 has no Patient.animal; use the extension http://hl7.org/fhir/StructureDefinition/patient-animal`},
		"another element":         {unknownElement(`{"resourceType":"Patient","colouring":"brown"}`), `Patient has no element "colouring"; correct its name or omit it`},
	}
	for name, test := range tests {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, test.err, test.want)
		}
	}
}
