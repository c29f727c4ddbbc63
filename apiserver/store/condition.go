package store

// Condition is a predicate on a record: one of the types of this file. Conditions on a search parameter
// compare the values that Extractor.Extract returns. Only the facade knows what a parameter means.
type Condition interface{ condition() }

// All holds if each of its conditions holds. All{} holds for every record.
type All []Condition

// IsEverything reports whether a condition is All{}, which holds for every record.
func IsEverything(condition Condition) bool {
	all, ok := condition.(All)
	return ok && len(all) == 0
}

// Any holds if one of its conditions holds. Any{} holds for no record.
type Any []Condition

// Not holds if its condition does not.
type Not struct{ Condition Condition }

// IDIn holds if the record has one of the ids. Case is ignored.
type IDIn []string

// UpdatedIn holds if the newest version was written in the range.
type UpdatedIn TimeRange

// Present holds if the record has an IndexValue of the parameter, also one whose Value is nil.
type Present struct{ Param string }

// TokenIs holds if a token of the parameter has the system and the code.
type TokenIs struct {
	Param string
	// System and Code match any system and any code if they are nil. A pointer to an empty System
	// matches tokens without a system.
	System, Code *string
}

// PairIs holds if a pair of the parameter matches First and Second, whose own Params are ignored.
type PairIs struct {
	Param         string
	First, Second TokenIs
}

// TextMatch is a way to compare texts.
type TextMatch int

// The ways to compare a text.
const (
	// StartsWith matches texts whose Folded form starts with TextIs.Text.
	StartsWith TextMatch = iota
	// Contains matches texts whose Folded form contains TextIs.Text.
	Contains
	// Exactly matches texts whose Original form equals TextIs.Text.
	Exactly
	// StartsExactly matches texts whose Original form starts with TextIs.Text.
	StartsExactly
)

// TextIs holds if a text of the parameter matches Text in the way that Match selects.
type TextIs struct {
	Param string
	Match TextMatch
	// Text is the text to compare with. It must be folded for StartsWith and Contains, and unchanged
	// for Exactly and StartsExactly.
	Text string
}

// PeriodIs holds if From and Until of a period of the parameter are within the bounds of the same
// name.
type PeriodIs struct {
	Param       string
	From, Until Bounds
}

// SinglePeriodIn holds if the period of the parameter is in one of the areas. It combines all
// conditions on a parameter of which no record has more than one period. If results are sorted by
// that parameter, an engine can scan only the areas. Whether the condition holds for a record with
// several periods is undefined.
type SinglePeriodIn struct {
	Param string
	// Areas has at least one area. The From bounds of the areas are in ascending order and do not
	// overlap.
	Areas []PeriodArea
}

// PeriodArea is a set of periods: those with From and Until within the bounds.
type PeriodArea struct{ From, Until Bounds }

// Bounds is the range from Least to Most, both inclusive, in microseconds since 1970 UTC.
type Bounds struct{ Least, Most int64 }

// Unbounded contains every time.
var Unbounded = Bounds{TheBeginning, TheEnd}

// Intersection returns the range of the times that are within both bounds.
func (b Bounds) Intersection(other Bounds) Bounds {
	return Bounds{Least: max(b.Least, other.Least), Most: min(b.Most, other.Most)}
}

// Empty reports whether no time is within the bounds.
func (b Bounds) Empty() bool { return b.Least > b.Most }

// RefersTo holds if a reference of the parameter equals To. A base URL of this site (Query.Bases)
// equals an empty base.
type RefersTo struct {
	Param string
	To    Reference
}

// RefersToID holds if a reference of the parameter is to a record of this site with the id. If
// matching references are to records of several types, Search returns *AmbiguousError.
type RefersToID struct {
	Param string
	// Types are the possible types of the record referred to. If Types is empty, all types match.
	Types []string
	ID    string
}

// RefersAround holds if a reference of the parameter is to To, or to a record below or above To in
// the hierarchy of the parameter. A record is below the records to which it refers by the parameter,
// directly or through other records. All records of the hierarchy have the same type. If To is not
// a record of this site, its hierarchy is unknown: only references to To match.
type RefersAround struct {
	Param string
	To    Reference
	// Above selects the records above To. If Above is false, the records below To are selected.
	Above bool
}

// Near holds if the distance (Point.Distance) between Center and a point of the parameter is at
// most Meters.
type Near struct {
	Param  string
	Center Point
	Meters float64
}

// Chain holds if a reference of the parameter is to a live record of this site that has the type
// and meets Where. R4 search.html#chaining.
type Chain struct {
	Param string
	Type  string
	Where Condition
}

// ReferredBy holds if a live record of the type that meets Where refers to the record by the
// parameter. R4 search.html#has.
type ReferredBy struct {
	Type  string
	Param string
	Where Condition
}

// HasLabel holds if the record has the label (Labels.Names).
type HasLabel string

// LinksTo holds if every link of the parameter (Labels.Links) to this site is to a live record that
// has the type and meets Where. It also holds if there are no such links. LinksTo is for conditions
// of Access. The Access of the query does not apply to the linked records.
type LinksTo struct {
	Param string
	Type  string
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
func (HasLabel) condition()       {}
func (LinksTo) condition()        {}

// Access maps each visible type to the condition that its visible records meet. All other records
// are hidden. A query behaves as if hidden records did not exist: they are not matched, counted,
// chained through, found as referring records, included or sorted by. A nil Access hides nothing.
type Access map[string]Condition
