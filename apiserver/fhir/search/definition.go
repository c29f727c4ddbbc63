package search

import (
	"maps"
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// definition is what the tables say about a parameter of one type or of several.
type definition struct {
	name string
	kind r4.SearchKind
	// types are the FHIR types of its values.
	types []string
	// targets are the types that its references may refer to.
	targets []string
	// bases are the types that it is a parameter of.
	bases      []string
	components []r4.SearchComponent
	// url is that of HL7's definition, if there is one.
	url string
	// readers read its values, by modifier.
	readers map[string]reader
	// single parameters find at most one element of a record.
	single bool
	// barren parameters are taken, but no element of the type could have a value.
	barren bool
}

const (
	paramID          = "_id"
	paramLastUpdated = "_lastUpdated"
	paramPatient     = "patient"
)

// definitions are all parameters, by type and name.
var definitions = define()

func define() map[string]map[string]definition {
	all := map[string]map[string]definition{}
	for _, t := range r4.Types {
		// Contract 4.1 has these on all types, also where no element could have a value.
		of := map[string]definition{
			"telecom":    {name: "telecom", kind: r4.SearchToken, types: []string{"ContactPoint"}, bases: []string{t.Name}, barren: true},
			paramPatient: {name: paramPatient, kind: r4.SearchReference, types: []string{"Reference"}, targets: []string{"Patient"}, bases: []string{t.Name}, barren: true},
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

// lookup finds a parameter that all of the types have, of the same kind.
func lookup(types []string, name string) (definition, bool) {
	found, ok := shared(types, name)
	if ok && len(types) > 1 {
		found.readers = readersOf(found)
	}
	return found, ok
}

// shared is lookup, without the readers where the types are several.
func shared(types []string, name string) (definition, bool) {
	var found definition
	for i, typeName := range types {
		d, ok := definitions[typeName][name]
		switch {
		case !ok || i > 0 && d.kind != found.kind:
			return definition{}, false
		case i == 0:
			found = d
		default:
			found.types = union(found.types, d.types)
			found.targets = union(found.targets, d.targets)
			found.bases = union(found.bases, d.bases)
			found.single = found.single && d.single
			if d.url != found.url {
				found.url = ""
			}
		}
	}
	return found, len(types) > 0
}

// namesOf are the parameters that all of the types have.
func namesOf(types []string) []string {
	names := slices.Sorted(maps.Keys(definitions[types[0]]))
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := shared(types, name)
		return !ok
	})
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// keptTargets are the targets that the server keeps.
func (d definition) keptTargets() []string {
	return slices.DeleteFunc(slices.Clone(d.targets), func(name string) bool {
		_, kept := r4.TypeOf(name)
		return !kept
	})
}

// hasAny reports whether values may be of one of the FHIR types.
func (d definition) hasAny(types ...string) bool {
	return slices.ContainsFunc(types, func(name string) bool { return slices.Contains(d.types, name) })
}

// isOneMoment reports whether a record has at most one value of the parameter, and that is a
// date, a dateTime or an instant.
func (d definition) isOneMoment() bool {
	return d.single && !slices.ContainsFunc(d.types, func(name string) bool {
		return name != "date" && name != "dateTime" && name != "instant"
	})
}

// isHierarchy reports whether the references lead from parts to their wholes, within
// one type.
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
