package v1alpha1

import "strings"

// ModelName is the name in OpenAPI of the schema of an R4 type that the kinds are
// made of: a datatype, such as HumanName, or the inside of an element, such as
// Patient.contact. No kind has such a name.
func ModelName(typeName string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(typeName, ".") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return modelPrefix + name.String()
}
