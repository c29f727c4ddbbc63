package search

import (
	"maps"
	"slices"
)

// Parameter is a search parameter in a CapabilityStatement.
type Parameter struct {
	Name string
	// Type is a code of the value set search-param-type.
	Type string
	// Definition is the canonical URL of HL7's definition, or empty.
	Definition string
}

// ParametersOf returns the search parameters of a type, sorted by name. It omits a parameter if no
// record of the type can have a value of it.
func ParametersOf(typeName string) []Parameter {
	var all []Parameter
	for _, name := range namesOf([]string{typeName}) {
		if d := definitions[typeName][name]; !d.alwaysEmpty {
			all = append(all, Parameter{name, kindNames[d.kind], d.url})
		}
	}
	return all
}

// CommonParameters returns the search parameters that HL7 defines for all types.
func CommonParameters() []Parameter {
	types := namesOfTypes()
	return slices.DeleteFunc(ParametersOf(types[0]), func(p Parameter) bool {
		d, _ := commonDefinition(types, p.Name)
		return d.url == "" // not the same definition for all types
	})
}

// IncludesOf returns the supported values of _include and of _revinclude in a search for a type. It
// omits the values with * and those with a target type.
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

// Kind is a kind of request. It determines which result parameters a request may have.
type Kind int

// The kinds of requests.
const (
	KindSearch Kind = iota
	KindHistory
	KindRead
	KindEverything
)

// ResultParameters returns the names of the result parameters of a kind of request, sorted: of all
// its parameters except search parameters.
func ResultParameters(of Kind) []string {
	tables := [...]map[string]resultParameter{searchResultParameters, historyResultParameters, readResultParameters, everythingResultParameters}
	return slices.Sorted(maps.Keys(tables[of]))
}

// Modifiers returns the modifiers of a search parameter of a type, sorted.
func Modifiers(typeName, parameter string) []string {
	names := slices.Sorted(maps.Keys(definitions[typeName][parameter].readers))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
