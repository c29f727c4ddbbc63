package search

import "slices"

// Parameter is a parameter that chooses records, as a CapabilityStatement lists it.
type Parameter struct {
	Name string
	// Type is a code of the value set search-param-type.
	Type string
	// Definition is the canonical URL of HL7's definition, if there is one.
	Definition string
}

// ParametersOf lists the parameters that choose records of a type, by name.
func ParametersOf(typeName string) []Parameter {
	var all []Parameter
	for _, name := range namesOf([]string{typeName}) {
		if d := definitions[typeName][name]; !d.barren {
			all = append(all, Parameter{name, kindNames[d.kind], d.url})
		}
	}
	return all
}

// CommonParameters lists those that HL7 defines for resources of all types.
func CommonParameters() []Parameter {
	types := namesOfTypes()
	return slices.DeleteFunc(ParametersOf(types[0]), func(p Parameter) bool {
		d, _ := shared(types, p.Name)
		return d.url == "" // not one definition for all
	})
}

// IncludesOf lists what _include takes for a type, and what _revinclude does.
func IncludesOf(typeName string) (includes, revIncludes []string) {
	all := namesOfTypes()
	for _, field := range referencesFrom(typeName, all) {
		includes = append(includes, typeName+":"+field)
	}
	for _, from := range all {
		for _, field := range referencesFrom(from, []string{typeName}) {
			revIncludes = append(revIncludes, from+":"+field)
		}
	}
	return includes, revIncludes
}
