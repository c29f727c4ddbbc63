package searchtruth

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/paddock-health/paddock/hack/examples"
)

// Kept are the resource types that the server keeps.
var Kept = []string{
	"Device", "DeviceDefinition", "DeviceMetric", "Endpoint", "Group", "HealthcareService", "Location",
	"Organization", "OrganizationAffiliation", "Patient", "Person", "Practitioner", "PractitionerRole", "RelatedPerson",
}

const animal = "Patient.extension('http://hl7.org/fhir/StructureDefinition/patient-animal')"

// beyond are the parameters that R4 does not define for a type: the contract's and
// the veterinary ones.
var beyond = map[string]map[string]string{
	"Device":            {"telecom": "Device.contact"},
	"DeviceDefinition":  {"telecom": "DeviceDefinition.contact"},
	"Endpoint":          {"telecom": "Endpoint.contact"},
	"HealthcareService": {"telecom": "HealthcareService.telecom"},
	"Location":          {"telecom": "Location.telecom"},
	"Organization":      {"telecom": "Organization.telecom | Organization.contact.telecom"},
	"Group":             {"patient": "Group.member.entity.where(resolve() is Patient)"},
	"Patient": {
		"patient":       "Patient.link.other.where(resolve() is Patient)",
		"species":       animal + ".extension('species').value.ofType(CodeableConcept)",
		"breed":         animal + ".extension('breed').value.ofType(CodeableConcept)",
		"gender-status": animal + ".extension('genderStatus').value.ofType(CodeableConcept)",
	},
}

// An engine without a server cannot resolve references, but the text of one tells the
// type; ofType is what R4 means by as, which takes one value only; and an element
// without a value, which has extensions only, compares to nothing.
var (
	resolves = regexp.MustCompile(`where\(resolve\(\) is (\w+)\)`)
	asTypes  = regexp.MustCompile(`\(([\w.]+) as (\w+)\)`)
	truths   = regexp.MustCompile(`^(.+)\.exists\(\) and .+ != false$`)
)

func evaluable(expression string) string {
	text := resolves.ReplaceAllString(expression,
		`where(type = '$1' or type = 'http://hl7.org/fhir/StructureDefinition/$1' or reference.matches('(^|/)$1/[^/]+(/_history/[^/]+)?$$'))`)
	text = truths.ReplaceAllString(text, `iif($1.exists() and $1.hasValue().not(), {}, $0)`)
	return asTypes.ReplaceAllString(text, `$1.ofType($2)`)
}

// load reads the expressions of the types kept, and the names of all resource types,
// from HL7's definitions.
func load(ctx context.Context, bin string) (map[string]map[string]string, map[string]bool, error) {
	path, err := examples.Fetch(ctx, bin)
	if err != nil {
		return nil, nil, err
	}
	expressions, types := map[string]map[string]string{}, map[string]bool{}
	for _, typ := range Kept {
		expressions[typ] = map[string]string{}
	}
	err = examples.Walk(path, func(name string, text []byte) error {
		switch {
		case strings.HasPrefix(name, "SearchParameter-") && !strings.Contains(name, "-extensions-"):
			return addParameter(expressions, text)
		case strings.HasPrefix(name, "StructureDefinition-"):
			var definition struct{ Kind, Name, Derivation string }
			if err := json.Unmarshal(text, &definition); err != nil {
				return err
			}
			if definition.Kind == "resource" && definition.Derivation == "specialization" {
				types[definition.Name] = true
			}
		}
		return nil
	})
	for typ, own := range expressions {
		for _, name := range []string{"tag", "security", "profile", "source"} {
			own["_"+name] = typ + ".meta." + name
		}
		for name, expression := range beyond[typ] {
			own[name] = evaluable(expression)
		}
	}
	return expressions, types, err
}

func addParameter(expressions map[string]map[string]string, text []byte) error {
	var p struct {
		ID, Code, Expression string
		Base                 []string
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	for _, base := range p.Base {
		if own := expressions[base]; own != nil && p.ID != "example-extension" {
			own[p.Code] = evaluable(p.Expression)
		}
	}
	return nil
}
