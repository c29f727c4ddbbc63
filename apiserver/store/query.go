package store

import (
	"time"
)

// SortField is a field that every record has and pages can be ordered by.
type SortField int

// The sort fields. Every order ends in the id, so that it is total.
const (
	SortCreated SortField = iota
	SortUpdated
	SortID
)

// Sort is an order of results. The zero value is by creation, oldest first.
type Sort struct {
	Field      SortField
	Descending bool
}

// TotalMode says how much a caller wants to know of the number of matches.
type TotalMode int

const (
	// TotalWhenFree gives the total where it costs nothing to know.
	TotalWhenFree TotalMode = iota
	// TotalAccurate always gives the exact total.
	TotalAccurate
	// TotalNone never gives it.
	TotalNone
)

// TimeRange is half-open: From ≤ t < Until. A zero bound is infinite.
type TimeRange struct {
	From, Until time.Time
}

// Contains reports whether t lies in the range.
func (r TimeRange) Contains(t time.Time) bool {
	return (r.From.IsZero() || !t.Before(r.From)) && (r.Until.IsZero() || t.Before(r.Until))
}

// Overlaps reports whether the range and [from, until) share an instant. A zero
// until is infinite.
func (r TimeRange) Overlaps(from, until time.Time) bool {
	return (until.IsZero() || r.From.Before(until)) && (r.Until.IsZero() || from.Before(r.Until))
}

// TokenMatch is one value that a token condition takes: a nil System takes any, a
// nil Code too.
type TokenMatch struct {
	System, Code *string
}

// Matches reports whether a value is one that the condition takes.
func (m TokenMatch) Matches(t Token) bool {
	return (m.System == nil || *m.System == t.System) && (m.Code == nil || *m.Code == t.Code)
}

// TokenCondition holds for a record with a value of the parameter that one of
// AnyOf takes.
type TokenCondition struct {
	Param string
	AnyOf []TokenMatch
}

// Query asks for live records of one type. Its conditions must all hold.
type Query struct {
	Type string
	// IDs, when not nil, are the ids to choose from, in any spelling.
	IDs []string
	// Updated holds conditions on the time of the newest version: for each
	// element, one of its ranges must contain it.
	Updated [][]TimeRange
	// Tokens are conditions on token parameters.
	Tokens []TokenCondition
	Sort   Sort
	// Count is the largest number of records on the page; 0 asks for the total only.
	Count int
	// After continues behind the last record of an earlier page of the same query.
	After Position
	Total TotalMode
}

// Position is where a page ended, opaque outside the engine that made it. The
// nil Position is the beginning, or, in an answer, the end.
type Position []byte

// HistoryQuery asks for versions, newest first: those of one record, of all
// records of a type where Key has no id, or of the whole site where Key is zero.
type HistoryQuery struct {
	Key Key
	// Deletions includes tombstones.
	Deletions bool
	// Since, unless zero, leaves out what was written before it.
	Since time.Time
	// Current, when not nil, are the periods in one of which a version must have
	// been its record's newest for some time.
	Current []TimeRange
	// Count is the largest number of versions on the page; 0 asks for the total only.
	Count int
	After Position
}

// UnknownTotal is the Total of a page whose engine was not asked, or could not
// tell for free, how many records match.
const UnknownTotal int64 = -1

// Page is one page of an answer.
type Page struct {
	Records []Record
	// Total is the number of records on all pages, or UnknownTotal.
	Total int64
	// Next is where the following page starts, nil on the last one.
	Next Position
}
