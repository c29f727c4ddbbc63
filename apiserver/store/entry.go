package store

import "math"

// Entry is one searchable value of one search parameter of a record.
type Entry struct {
	// Param is empty where the value is a Mention.
	Param string
	// Value is nil where the parameter's element is there but has nothing to compare:
	// that counts for Present alone. A parameter has texts or periods, never both.
	Value Value
}

// Value is a Token, Pair, Text, Reference, Period, Point or Mention.
type Value interface{ value() }

// Token is a coded value: an identifier, a code, a tag. R4 search.html#token.
type Token struct {
	// System is the namespace of the code, empty when the value has none.
	System string
	// Code is folded by the facade where case does not matter.
	Code string
}

// Pair is a value of a composite parameter of two tokens. R4 search.html#composite.
type Pair struct{ First, Second Token }

// Text is a string or a URI. R4 search.html#string.
type Text struct {
	// Folded has neither case nor accents; it is what orders and prefixes compare.
	Folded string
	// Original is the text as it stands, for exact matches.
	Original string
}

// Reference points to a record of this site (Base is empty or one of the site's own
// addresses), to one elsewhere, or, without Type and ID, to whatever the URL in Base
// names. R4 references.html#literal.
type Reference struct {
	Base string
	Type string
	// ID is in lower case.
	ID string
}

// Mention is a reference to a record that no parameter finds. Searches neither match
// nor follow nor include by it: it counts for Op.Unreferenced alone.
type Mention Reference

// Period is half-open: From ≤ t < Until, in microseconds since 1970 UTC, which
// reach over all years of FHIR. R4 search.html#date.
type Period struct{ From, Until int64 }

// The ends of time, for periods that are open.
const (
	TheBeginning = math.MinInt64
	TheEnd       = math.MaxInt64
)

// Point is a place on the earth in degrees (WGS 84).
type Point struct{ Latitude, Longitude float64 }

func (Token) value()     {}
func (Pair) value()      {}
func (Text) value()      {}
func (Reference) value() {}
func (Mention) value()   {}
func (Period) value()    {}
func (Point) value()     {}

// Extract returns the searchable values of a record. It is a pure function of
// type and body, so that engines may call it whenever they index a record.
type Extract func(recordType string, body []byte) []Entry
