package r4

// SearchKind is the type of a search parameter. R4 search.html#ptypes.
type SearchKind uint8

// The types of search parameters that the types kept have.
const (
	SearchToken SearchKind = iota + 1
	SearchString
	SearchReference
	SearchDate
	SearchURI
	SearchComposite
	SearchSpecial
)

// SearchParameter says where a search parameter finds its values in resources of a type.
type SearchParameter struct {
	Name string
	Kind SearchKind
	// Components are the parts of a composite.
	Components []SearchComponent
	// Single reports whether a resource has at most one element that the parameter finds,
	// by R4's cardinalities of all elements on the way.
	Single bool

	base typeIndex
	// definition is the id of HL7's definition, empty where there is none.
	definition string
	targets    []typeIndex
	paths      []searchPath
	// codes is the value set that codes found must be from; the trails note it.
	codes valueSetIndex
}

// SearchComponent is a part of a composite parameter: a parameter of its own, and
// the element of the composite's values that has its value.
type SearchComponent struct {
	Name    string
	Element string
}

// Targets are the types that values of a reference parameter can refer to; none
// for any.
func (p *SearchParameter) Targets() []string {
	names := make([]string, len(p.targets))
	for i, typ := range p.targets {
		names[i] = types[typ].name
	}
	return names
}

// System is the system of values of type code, which name none: that of the value set
// they must be from. R4 search.html#token.
func (p *SearchParameter) System() string {
	if systems := valueSets[p.codes].systems; len(systems) == 1 {
		return systems[0].system
	}
	return ""
}

// SearchParameters are those of a type, and those of all types.
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

// searchPath is a way from a resource to values, and what they must meet.
type searchPath struct {
	steps []string
	// as is the type that a choice must have.
	as typeIndex
	// where names an element that must have the value is.
	where, is string
	// refersTo is the type that a reference must refer to.
	refersTo typeIndex
	// truth asks whether there is a value that is not false.
	truth bool
	// urls are those that the extensions on the way must have.
	urls []string
}
