// Package r4 defines FHIR R4 (4.0.1): tables of types, value sets and search parameters, and a
// reader that validates a body in one pass and prepares it for storage. It does not depend on HTTP
// or storage.
package r4

// Group is the API group under which access to the resource types is authorized.
const Group = "r4.fhir.paddock.health"

// OptionalInContract are the elements that R4 requires but the contract does not (contract 2.2).
var OptionalInContract = []string{"Endpoint.status", "Endpoint.address"}

// Type is a resource type that the server supports.
type Type struct {
	// Name is FHIR's name, such as PractitionerRole.
	Name string
	// Segment is the contract's path segment, such as practitioner-role.
	Segment string
	// Resource is the name in Kubernetes RBAC, such as practitionerroles.
	Resource string
}

// Types are the supported resource types, in the order of the contract (contract 2.1).
var Types = []Type{
	{"Device", "device", "devices"},
	{"DeviceDefinition", "device-definition", "devicedefinitions"},
	{"DeviceMetric", "device-metric", "devicemetrics"},
	{"Endpoint", "endpoint", "endpoints"},
	{"Group", "group", "groups"},
	{"HealthcareService", "healthcare-service", "healthcareservices"},
	{"Location", "location", "locations"},
	{"Organization", "organization", "organizations"},
	{"OrganizationAffiliation", "organization-affiliation", "organizationaffiliations"},
	{"Patient", "patient", "patients"},
	{"Person", "person", "persons"},
	{"Practitioner", "practitioner", "practitioners"},
	{"PractitionerRole", "practitioner-role", "practitionerroles"},
	{"RelatedPerson", "related-person", "relatedpersons"},
}

var bySpelling = func() map[string]Type {
	types := make(map[string]Type, 2*len(Types))
	for _, t := range Types {
		types[t.Name] = t
		types[t.Segment] = t
	}
	return types
}()

// TypeOf returns the supported type with a name that a path may use: FHIR's name or the contract's
// segment. It returns false for other names.
func TypeOf(spelling string) (Type, bool) {
	t, ok := bySpelling[spelling]
	return t, ok
}

// IDPattern describes a valid id, for messages.
const IDPattern = "1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'"

// ValidID reports whether id is a FHIR id. Contract 2.2.
func ValidID(id string) bool { return isID([]byte(id)) }
