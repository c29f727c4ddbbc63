package v1alpha1

import "strings"

// ModelName returns the OpenAPI name of the schema of an R4 type that kinds contain: a datatype, such
// as HumanName, or a backbone element, such as Patient.contact. It differs from the names of the
// schemas of all kinds.
func ModelName(typeName string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(typeName, ".") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return modelPrefix + name.String()
}
