package store

import "math"

// IndexValue is one searchable value of one search parameter of a record.
type IndexValue struct {
	// Param is the search parameter. It is empty if the value is a Mention.
	Param string
	// Value is nil if the element exists but has nothing to compare. Only Present matches such an
	// IndexValue. A parameter has texts or periods, never both.
	Value Value
}

// Value is a Token, Pair, Text, Reference, Period, Point or Mention.
type Value interface{ value() }

// Token is a coded value: an identifier, a code, a tag. R4 search.html#token.
type Token struct {
	// System is the namespace of the code. It is empty if the value has none.
	System string
	// Code is in folded case if the parameter ignores case. The facade folds it.
	Code string
}

// Pair is a value of a composite parameter with two tokens. R4 search.html#composite.
type Pair struct{ First, Second Token }

// Text is a string or a URI. R4 search.html#string.
type Text struct {
	// Folded is the text without case and accents, for sorting and for matches that ignore both.
	Folded string
	// Original is the unchanged text, for exact matches.
	Original string
}

// Reference is a literal reference. R4 references.html#literal.
type Reference struct {
	// Base is the base URL of the server of the record referred to. It is empty or a base URL of this
	// site if that record is a record of this site. If Type and ID are empty, Base is the whole text of
	// a reference that does not end with a type and an id.
	Base string
	Type string
	// ID is in lower case.
	ID string
}

// Mention is a reference that no search parameter finds. Searches ignore it. Only Op.Unreferenced
// counts it.
type Mention Reference

// Period is the half-open interval From ≤ t < Until, in microseconds since 1970 UTC. The range
// includes all years that FHIR allows. R4 search.html#date.
type Period struct{ From, Until int64 }

// The bounds of periods that are open at the start or at the end.
const (
	TheBeginning = math.MinInt64
	TheEnd       = math.MaxInt64
)

// Point is a position on the earth in degrees (WGS 84).
type Point struct{ Latitude, Longitude float64 }

func (Token) value()     {}
func (Pair) value()      {}
func (Text) value()      {}
func (Reference) value() {}
func (Mention) value()   {}
func (Period) value()    {}
func (Point) value()     {}
