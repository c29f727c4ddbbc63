package r4

import "slices"

// SearchKind is the type of a search parameter. R4 search.html#ptypes.
type SearchKind uint8

// The types of search parameters of the supported resource types.
const (
	SearchToken SearchKind = iota + 1
	SearchString
	SearchReference
	SearchDate
	SearchURI
	SearchComposite
	SearchSpecial
)

// SearchParameter is a search parameter of a resource type.
type SearchParameter struct {
	Name string
	Kind SearchKind
	// Components are the components of a composite parameter. It is nil for other parameters.
	Components []SearchComponent
	// Single is set if a resource has at most one element that the parameter selects, according to
	// the cardinalities of all elements on the path in R4.
	Single bool

	base typeIndex
	// definition is the id of HL7's definition. It is empty if there is none.
	definition string
	targets    []typeIndex
	paths      []searchPath
	// codes is the value set of the selected codes. buildTrails sets it.
	codes valueSetIndex
}

// SearchComponent is a component of a composite parameter. Name is the name of the search parameter
// of the component. Element is the name of the element that has the component's value, in each
// value of the composite parameter.
type SearchComponent struct {
	Name    string
	Element string
}

// Targets returns the target types in HL7's definition of a reference parameter. It is empty if the
// definition has none, which means any type.
func (p *SearchParameter) Targets() []string {
	names := make([]string, len(p.targets))
	for i, typ := range p.targets {
		names[i] = types[typ].name
	}
	return names
}

// System returns the code system of values of type code, whose system is not in the body: the only
// system of their value set. It is empty if there are several systems or none. R4
// search.html#token.
func (p *SearchParameter) System() string {
	if systems := valueSets[p.codes].systems; len(systems) == 1 {
		return systems[0].system
	}
	return ""
}

// SearchParameters returns the search parameters of a type, including those that all types have.
func SearchParameters(typeName string) []*SearchParameter {
	typ, _ := resourceNamed([]byte(typeName))
	var found []*SearchParameter
	for i := range searchParameters {
		if p := &searchParameters[i]; p.isOf(typ) {
			found = append(found, p)
		}
	}
	return found
}

func (p *SearchParameter) isOf(typ typeIndex) bool { return p.base == typ || p.base == typeResource }

// IsPartOf reports whether p selects a part of what whole selects. Either both are of type string, and
// each element that p selects is a child of one that whole selects, as given is of name. Or both are of
// type token, and p selects those elements that have some system, as phone does of telecom.
func (p *SearchParameter) IsPartOf(whole *SearchParameter) bool {
	isPart := func(path searchPath) bool {
		condition := path.where
		path.where, path.is = "", ""
		return path.hasNoCondition() && slices.ContainsFunc(whole.paths, func(of searchPath) bool {
			if last := len(path.steps) - 1; p.Kind == SearchString {
				return last > 0 && condition == "" && slices.Equal(path.steps[:last], of.steps) && of.hasNoCondition()
			}
			return condition == "system" && slices.Equal(path.steps, of.steps) && of.hasNoCondition()
		})
	}
	return (p.Kind == SearchString || p.Kind == SearchToken) && p.Kind == whole.Kind && p.base == whole.base &&
		!slices.ContainsFunc(p.paths, func(path searchPath) bool { return !isPart(path) })
}

func (p searchPath) hasNoCondition() bool {
	return p.as == 0 && p.where == "" && p.refersTo == 0 && !p.truth && len(p.urls) == 0
}

// searchPath is a path from a resource to values, with conditions on the values.
type searchPath struct {
	steps []string
	// as is the type that a choice must have, or 0.
	as typeIndex
	// where names an element of the value, which must have the text in the field is. If where is
	// empty, there is no such condition.
	where, is string
	// refersTo is the type that a reference must refer to, or 0.
	refersTo typeIndex
	// truth is set if the parameter tests whether there is a value other than false.
	truth bool
	// urls are the URLs that the extensions on the path must have.
	urls []string
}
