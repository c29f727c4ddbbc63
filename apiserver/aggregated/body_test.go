package aggregated

import (
	"strings"
	"testing"
)

// TestBodyOfRefuses shows that objects are refused for what the FHIR API refuses: a projection, and a target of
// another type by the contract's URL of a record of the Site.
func TestBodyOfRefuses(t *testing.T) {
	const base = "https://h.example/site/s/fhir"
	for name, test := range map[string]struct{ spec, want string }{
		"a projection":             {`{"patient":{"reference":"Patient/a"},"meta":{"tag":[{"system":"http://terminology.hl7.org/CodeSystem/v3-ObservationValue","code":"SUBSETTED"}]}}`, "spec.meta.tag: Forbidden"},
		"a target of another type": {`{"patient":{"reference":"` + base + `/organization/o"}}`, "spec.patient.reference: Invalid value"},
		"a target of the type":     {`{"patient":{"reference":"` + base + `/patient/p"}}`, ""},
		"another server's":         {`{"patient":{"reference":"https://other.example/organization/o"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := bodyOf("RelatedPerson", "r", []byte(test.spec), []string{base})
			if got := errs.ToAggregate(); test.want == "" && got != nil || test.want != "" && (got == nil || !strings.HasPrefix(got.Error(), test.want)) {
				t.Errorf("got %v, want %q", got, test.want)
			}
		})
	}
}
