package store

// Condition is what a record must meet: one of the types of this file. The values
// that they compare are those that Extract finds; what a parameter means is the
// facade's to know.
type Condition interface{ condition() }

// All holds when each of its conditions does, and so does All{}.
type All []Condition

// Any holds when one of its conditions does; Any{} never does.
type Any []Condition

// Not holds when its condition does not.
type Not struct{ Condition Condition }

// IDIn holds for the records with one of the ids, in any spelling.
type IDIn []string

// UpdatedIn holds when the newest version was written in the range.
type UpdatedIn TimeRange

// Present holds when the parameter has any value.
type Present struct{ Param string }

// TokenIs holds when a token of the parameter has the system and the code: nil takes
// any, an empty system none.
type TokenIs struct {
	Param        string
	System, Code *string
}

// PairIs holds when a pair of the parameter has both tokens; their Params are not used.
type PairIs struct {
	Param         string
	First, Second TokenIs
}

// TextMatch is how texts are compared.
type TextMatch int

// The ways to compare texts.
const (
	// StartsWith and Contains compare Text.Folded.
	StartsWith TextMatch = iota
	Contains
	// Exactly and StartsExactly compare Text.Original.
	Exactly
	StartsExactly
)

// TextIs holds when a text of the parameter compares with Text, which is folded
// where Text.Folded is compared.
type TextIs struct {
	Param string
	Match TextMatch
	Text  string
}

// PeriodIs holds when a period of the parameter begins and ends within bounds, which
// are inclusive.
type PeriodIs struct {
	Param       string
	From, Until Bounds
}

// SinglePeriodIn holds when the period of the parameter is in one of the areas. It is for
// parameters of which no record has more than one period, and takes all conditions on that
// period together: where results are sorted by the parameter, engines walk the areas alone.
// Whether a record with several periods is found is not defined.
type SinglePeriodIn struct {
	Param string
	// Areas do not overlap in From, and are in the order of it. There is at least one.
	Areas []PeriodArea
}

// PeriodArea is where a period begins and where it ends.
type PeriodArea struct{ From, Until Bounds }

// Bounds are inclusive.
type Bounds struct{ Least, Most int64 }

// Unbounded takes every time.
var Unbounded = Bounds{TheBeginning, TheEnd}

// Intersection is what is within both bounds.
func (b Bounds) Intersection(other Bounds) Bounds {
	return Bounds{Least: max(b.Least, other.Least), Most: min(b.Most, other.Most)}
}

// Empty reports whether nothing is within the bounds.
func (b Bounds) Empty() bool { return b.Least > b.Most }

// RefersTo holds when a reference of the parameter is To. The own addresses of the
// site (Query.Bases) and no base are the same.
type RefersTo struct {
	Param string
	To    Reference
}

// RefersToID holds when a reference of the parameter is to a record of this site with
// the id, of one of the types, or of any type when there are none. A query that is
// met in this way by references to records of several types is ambiguous: Search
// answers *AmbiguousError.
type RefersToID struct {
	Param string
	Types []string
	ID    string
}

// RefersAround holds when a reference of the parameter, which leads from records of
// a type to records of the same type, is to To or to a record below it (one that
// refers to it by the parameter, directly or through others), or to a record above it.
type RefersAround struct {
	Param string
	To    Reference
	// Above takes the records above To; else those below.
	Above bool
}

// Near holds when a point of the parameter is within the distance of Center.
type Near struct {
	Param  string
	Center Point
	// Meters along the great circle.
	Meters float64
}

// Chain holds when a reference of the parameter is to a record of the type, of this
// site, that meets Where.
type Chain struct {
	Param string
	Type  string
	Where Condition
}

// ReferredBy holds when a record of the type that meets Where refers to the record by
// the parameter.
type ReferredBy struct {
	Type  string
	Param string
	Where Condition
}

func (All) condition()            {}
func (Any) condition()            {}
func (Not) condition()            {}
func (IDIn) condition()           {}
func (UpdatedIn) condition()      {}
func (Present) condition()        {}
func (TokenIs) condition()        {}
func (PairIs) condition()         {}
func (TextIs) condition()         {}
func (PeriodIs) condition()       {}
func (SinglePeriodIn) condition() {}
func (RefersTo) condition()       {}
func (RefersToID) condition()     {}
func (RefersAround) condition()   {}
func (Near) condition()           {}
func (Chain) condition()          {}
func (ReferredBy) condition()     {}

// Access says which records a query may meet, by type: those of a type with a
// condition must meet it, those of other types are not met at all. It is part of
// every step: what it hides is not matched, counted, chained through, found as
// referring, included or sorted by. Nil hides nothing.
type Access map[string]Condition
