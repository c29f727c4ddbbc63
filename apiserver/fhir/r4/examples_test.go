package r4

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// invalidExamples are the files of HL7's package that break R4's own rules, and the
// first rule they break. None is of a type that the server keeps.
var invalidExamples = map[string]string{
	"ActivityDefinition-blood-tubes-supply.json":                                               "txt-2 ActivityDefinition.text.div",
	"ActivityDefinition-heart-valve-replacement.json":                                          "txt-2 ActivityDefinition.text.div",
	"DeviceUseStatement-example.json":                                                          "wrong_reference_target DeviceUseStatement.reasonReference[0].reference",
	"EventDefinition-example.json":                                                             "txt-2 EventDefinition.text.div",
	"ImplementationGuide-fhir.json":                                                            "invalid_reference ImplementationGuide.manifest.resource[11904].reference.reference",
	"MedicationRequest-medrx0301.json":                                                         "wrong_reference_target MedicationRequest.dispenseRequest.performer.reference",
	"Observation-clinical-gender.json":                                                         "wrong_reference_target Observation.performer[0].reference",
	"Questionnaire-qs1.json":                                                                   "missing_element Questionnaire.item[0].item[0].linkId",
	"Questionnaire-zika-virus-exposure-assessment.json":                                        "txt-2 Questionnaire.text.div",
	"SearchParameter-codesystem-extensions-CodeSystem-author.json":                             "missing_element SearchParameter.base",
	"SearchParameter-valueset-extensions-ValueSet-author.json":                                 "missing_element SearchParameter.base",
	"SearchParameter-codesystem-extensions-CodeSystem-effective.json":                          "missing_element SearchParameter.base",
	"SearchParameter-valueset-extensions-ValueSet-effective.json":                              "missing_element SearchParameter.base",
	"SearchParameter-codesystem-extensions-CodeSystem-end.json":                                "missing_element SearchParameter.base",
	"SearchParameter-valueset-extensions-ValueSet-end.json":                                    "missing_element SearchParameter.base",
	"SearchParameter-codesystem-extensions-CodeSystem-keyword.json":                            "missing_element SearchParameter.base",
	"SearchParameter-valueset-extensions-ValueSet-keyword.json":                                "missing_element SearchParameter.base",
	"SearchParameter-codesystem-extensions-CodeSystem-workflow.json":                           "missing_element SearchParameter.base",
	"SearchParameter-valueset-extensions-ValueSet-workflow.json":                               "missing_element SearchParameter.base",
	"SearchParameter-questionnaireresponse-extensions-QuestionnaireResponse-item-subject.json": "invalid_id SearchParameter.id",
	"ig-r4.json": "invalid_reference ImplementationGuide.manifest.resource[11904].reference.reference",
}

// TestExamples reads every resource of HL7's package, of all types, with what they
// contain.
func TestExamples(t *testing.T) {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	invalid, ours, contained := map[string]string{}, map[string]int{}, map[string]int{}
	err = examples.Walk(path, func(name string, text []byte) error {
		typ, _, _ := strings.Cut(name, "-")
		switch typ {
		case "package.json":
			return nil
		case "ig":
			typ = "ImplementationGuide"
		}
		if _, ok := TypeOf(typ); ok {
			ours[typ]++
			checkRoundTrip(t, typ, text)
		}
		if _, err := Read(text, Options{Type: typ}); err != nil {
			var issues Errors
			if !errors.As(err, &issues) {
				return err
			}
			invalid[name] = issues[0].Code + " " + issues[0].Expression
		}
		countContained(text, contained)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(invalidExamples, invalid); diff != "" {
		t.Error(diff)
	}
	total := 0
	for _, n := range ours {
		total += n
	}
	t.Logf("accepted all %d examples of %d types kept; types of contained resources: %v", total, len(ours), contained)
	if len(ours) != len(Types) || len(contained) < 20 {
		t.Errorf("there are examples of the types %v, and of the contained types %v", ours, contained)
	}
}

// countContained counts the types of the resources that a resource contains.
func countContained(text []byte, counts map[string]int) {
	for m := range jsonwalk.Members(text) {
		if m.Name != "contained" {
			continue
		}
		for resource := range jsonwalk.Elements(m.Value) {
			name, _ := resourceTypeOf(resource)
			counts[string(name)]++
		}
	}
}
