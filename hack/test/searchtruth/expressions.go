package searchtruth

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

// Kept are the resource types that the server keeps.
var Kept = []string{
	"Device", "DeviceDefinition", "DeviceMetric", "Endpoint", "Group", "HealthcareService", "Location",
	"Organization", "OrganizationAffiliation", "Patient", "Person", "Practitioner", "PractitionerRole", "RelatedPerson",
}

// Parameter is a search parameter of a type.
type Parameter struct {
	// Kind is HL7's type of the parameter, such as token, string or reference.
	Kind string
	// Targets are the types to which references of the parameter may refer.
	Targets []string
	// Expression is the FHIRPath expression that finds the values.
	Expression string
	// Canonical reports whether the values are canonical URLs, with or without a version.
	Canonical bool
	// ID is the id of HL7's definition. It is empty if there is none.
	ID string
}

// contractual are the parameters that the contract defines and R4 does not.
var contractual = map[string]map[string]Parameter{
	"Device":            {"telecom": token("Device.contact")},
	"DeviceDefinition":  {"telecom": token("DeviceDefinition.contact")},
	"Endpoint":          {"telecom": token("Endpoint.contact")},
	"HealthcareService": {"telecom": token("HealthcareService.telecom")},
	"Location":          {"telecom": token("Location.telecom")},
	"Organization":      {"telecom": token("Organization.telecom | Organization.contact.telecom")},
	"Group":             {"patient": toPatient("Group.member.entity.where(resolve() is Patient)")},
	"Patient":           {"patient": toPatient("Patient.link.other.where(resolve() is Patient)")},
}

func token(expression string) Parameter { return Parameter{Kind: "token", Expression: expression} }

func toPatient(expression string) Parameter {
	return Parameter{Kind: "reference", Targets: []string{"Patient"}, Expression: expression}
}

// ofAll are the parameters of all types that search elements.
var ofAll = map[string]Parameter{
	"_tag":      {Kind: "token", Expression: "Resource.meta.tag", ID: "Resource-tag"},
	"_security": {Kind: "token", Expression: "Resource.meta.security", ID: "Resource-security"},
	"_profile":  {Kind: "uri", Expression: "Resource.meta.profile", Canonical: true, ID: "Resource-profile"},
	"_source":   {Kind: "uri", Expression: "Resource.meta.source", ID: "Resource-source"},
}

// These parts of R4's expressions are replaced by evaluable. Without a server, an engine cannot
// resolve a reference, but its text has the type. R4 writes "as", which accepts a single value, and
// means ofType. An element that has only extensions and no value is equal to nothing, so a comparison
// with it has no result.
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

// Parameters returns the parameters of each type, by name: those of HL7's definitions, the additions
// and those of the contract. Unlike New, it does not install fhirpath.js.
func Parameters(ctx context.Context, bin string) (map[string]map[string]Parameter, error) {
	parameters, _, err := load(ctx, bin, map[string]Compartment{})
	return parameters, err
}

// load returns the parameters of the types that the server keeps, and the names of all resource types
// of R4. It adds HL7's compartments to compartments.
func load(ctx context.Context, bin string, compartments map[string]Compartment) (map[string]map[string]Parameter, map[string]bool, error) {
	path, err := examples.Fetch(ctx, bin)
	if err != nil {
		return nil, nil, err
	}
	parameters, types := map[string]map[string]Parameter{}, map[string]bool{}
	for _, typ := range Kept {
		parameters[typ] = maps.Clone(ofAll)
		maps.Copy(parameters[typ], contractual[typ])
	}
	additions, err := Additions(bin)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range additions {
		parameters[a.Base[0]][a.Code] = Parameter{Kind: a.Type, Targets: a.Target, Expression: a.Expression, ID: a.ID}
	}
	err = examples.Walk(path, func(name string, text []byte) error {
		switch {
		case strings.HasPrefix(name, "SearchParameter-") && !strings.Contains(name, "-extensions-"):
			return addParameter(parameters, text)
		case strings.HasPrefix(name, "CompartmentDefinition-"):
			return addCompartment(compartments, name, text)
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
	return parameters, types, err
}

func addParameter(parameters map[string]map[string]Parameter, text []byte) error {
	var p struct {
		ID, Code, Type, Expression string
		Base, Target               []string
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	for _, base := range p.Base {
		if own := parameters[base]; own != nil && p.ID != "example-extension" {
			own[p.Code] = Parameter{Kind: p.Type, Targets: p.Target, Expression: p.Expression, ID: p.ID}
		}
	}
	return nil
}
