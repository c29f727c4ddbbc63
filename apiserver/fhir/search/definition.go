package search

import (
	"maps"
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// definition is the definition of a search parameter for one type or for several.
type definition struct {
	name string
	kind r4.SearchKind
	// types are the FHIR types of its values.
	types []string
	// targets are the types to which its references may refer.
	targets []string
	// bases are the types that have the parameter.
	bases      []string
	components []r4.SearchComponent
	// url is the canonical URL of HL7's definition, or empty.
	url string
	// readers parse its values, by modifier. The modifier "" means none.
	readers map[string]reader
	// single is true if a record has at most one element with a value.
	single bool
	// alwaysEmpty is true if the parameter selects no element of the type. The parameter is accepted,
	// but no record has a value of it.
	alwaysEmpty bool
}

const (
	paramID          = "_id"
	paramLastUpdated = "_lastUpdated"
	paramPatient     = "patient"
)

// definitions are all search parameters by type and name.
var definitions = buildDefinitions()

func buildDefinitions() map[string]map[string]definition {
	all := map[string]map[string]definition{}
	for _, t := range r4.Types {
		// Contract 4.1 defines these for all types, even for those without such an element.
		of := map[string]definition{
			"telecom":    {name: "telecom", kind: r4.SearchToken, types: []string{"ContactPoint"}, bases: []string{t.Name}, alwaysEmpty: true},
			paramPatient: {name: paramPatient, kind: r4.SearchReference, types: []string{"Reference"}, targets: []string{"Patient"}, bases: []string{t.Name}, alwaysEmpty: true},
		}
		for _, p := range r4.SearchParameters(t.Name) {
			of[p.Name] = definition{
				name: p.Name, kind: p.Kind, types: p.Types(), targets: p.References(),
				bases: []string{t.Name}, components: p.Components, url: p.Definition(), single: p.Single,
			}
		}
		for name, d := range of {
			d.readers = readersOf(d)
			of[name] = d
		}
		all[t.Name] = of
	}
	return all
}

// lookup returns the definition of a parameter that all types have with the same kind.
func lookup(types []string, name string) (definition, bool) {
	found, ok := commonDefinition(types, name)
	if ok && len(types) > 1 {
		found.readers = readersOf(found)
	}
	return found, ok
}

// commonDefinition is like lookup, but for several types the readers in the result are not valid.
func commonDefinition(types []string, name string) (definition, bool) {
	var found definition
	for i, typeName := range types {
		d, ok := definitions[typeName][name]
		switch {
		case !ok || i > 0 && d.kind != found.kind:
			return definition{}, false
		case i == 0:
			found = d
		default:
			found.types = mergeNames(found.types, d.types)
			found.targets = mergeNames(found.targets, d.targets)
			found.bases = mergeNames(found.bases, d.bases)
			found.single = found.single && d.single
			if d.url != found.url {
				found.url = ""
			}
		}
	}
	return found, len(types) > 0
}

// namesOf returns the names of the parameters that all types have, sorted.
func namesOf(types []string) []string {
	names := slices.Sorted(maps.Keys(definitions[types[0]]))
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := commonDefinition(types, name)
		return !ok
	})
}

func mergeNames(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// supportedTargets returns the targets that the server supports.
func (d definition) supportedTargets() []string {
	return slices.DeleteFunc(slices.Clone(d.targets), func(name string) bool {
		_, kept := r4.TypeOf(name)
		return !kept
	})
}

// hasAny reports whether values may have one of the FHIR types.
func (d definition) hasAny(types ...string) bool {
	return slices.ContainsFunc(types, func(name string) bool { return slices.Contains(d.types, name) })
}

// isOneMoment reports whether a record has at most one value of the parameter and that value is a
// date, a dateTime or an instant.
func (d definition) isOneMoment() bool {
	return d.single && !slices.ContainsFunc(d.types, func(name string) bool {
		return name != "date" && name != "dateTime" && name != "instant"
	})
}

// isHierarchy reports whether the references are from a part to its whole, of the same type.
func (d definition) isHierarchy() bool {
	return (d.name == "partof" || d.name == "parent") && slices.Equal(d.targets, d.bases)
}

// kindNames are the codes of the kinds. R4 valueset-search-param-type.html.
var kindNames = map[r4.SearchKind]string{
	r4.SearchToken:     "token",
	r4.SearchString:    "string",
	r4.SearchReference: "reference",
	r4.SearchDate:      "date",
	r4.SearchURI:       "uri",
	r4.SearchComposite: "composite",
	r4.SearchSpecial:   "special",
}
