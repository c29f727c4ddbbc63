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

// searchParameter says where a search parameter finds its values in a type.
type searchParameter struct {
	base       typeIndex
	name       string
	kind       SearchKind
	targets    []typeIndex
	paths      []searchPath
	components []searchComponent
}

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
}

// searchComponent is a part of a composite parameter.
type searchComponent struct {
	name string
	path searchPath
}
