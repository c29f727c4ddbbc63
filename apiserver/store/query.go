package store

import (
	"time"
)

// SortField is what pages can be ordered by.
type SortField int

// The sort fields. Every order ends in that of creation, in the direction of its last part;
// records made in one millisecond are in an order that the engine keeps to.
const (
	SortCreated SortField = iota
	SortUpdated
	SortID
	// SortText orders by the texts of a parameter, SortPeriod by the beginnings of its
	// periods. Of several values the one counts that comes first in the order; records
	// without any come last, in both directions.
	SortText
	SortPeriod
)

// Sort is a part of an order of results. The zero value is by creation, oldest first.
type Sort struct {
	Field SortField
	// Param is the parameter of SortText and SortPeriod.
	Param      string
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

// Intersection is what is in both ranges.
func (r TimeRange) Intersection(other TimeRange) TimeRange {
	if r.From.Before(other.From) { // a zero From is before all others
		r.From = other.From
	}
	if r.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(r.Until) {
		r.Until = other.Until
	}
	return r
}

// Empty reports whether no time is in the range.
func (r TimeRange) Empty() bool {
	return !r.From.IsZero() && !r.Until.IsZero() && !r.From.Before(r.Until)
}

// Overlaps reports whether the range and [from, until) share an instant. A zero
// until is infinite.
func (r TimeRange) Overlaps(from, until time.Time) bool {
	return (until.IsZero() || r.From.Before(until)) && (r.Until.IsZero() || from.Before(r.Until))
}

// Query asks for live records.
type Query struct {
	// Types are those of the records to choose from.
	Types []string
	// Where is what the records must meet; nil: nothing.
	Where Condition
	// ByType is what the records of a type must meet in addition to Where, by type.
	ByType map[string]Condition
	Access Access
	// Bases are the addresses of this site: what refers there refers to its records.
	Bases []string
	// Sort is the order, its most important part first; none is by creation.
	Sort []Sort
	// Count is the largest number of records on the page; 0 asks for the total only.
	Count int
	// After continues behind the last record of an earlier page of the same query.
	After Position
	// Skip leaves out that many of the matches behind After, for lists whose pages have
	// numbers; a page past the end is empty. It costs more the more it leaves out.
	Skip     int
	Total    TotalMode
	Includes []Include
	// MaxIncluded bounds the number of included records of a page.
	MaxIncluded int
	// Room, if not nil, is memory for the bodies of the matches. It is the caller's, to be used
	// again once nothing refers to them, and is made larger where it is too small.
	Room *[]byte
}

// WhereOf returns all that the records of a type must meet, nil for nothing.
func (q Query) WhereOf(typeName string) Condition {
	switch own := q.ByType[typeName]; {
	case own == nil:
		return q.Where
	case q.Where == nil:
		return own
	default:
		return All{own, q.Where}
	}
}

// Include asks for the records that those of a page refer to, or that refer to them.
// R4 search.html#include.
type Include struct {
	// Reverse asks for those that refer to records of the page.
	Reverse bool
	// Type is that of the referring records; empty: any.
	Type string
	// Param is the parameter that finds the references; empty: any.
	Param string
	// Target is the type referred to; empty: any.
	Target string
	// Iterate applies it to included records too.
	Iterate bool
}

// Position is where a page ended, opaque outside the engine that made it. The
// nil Position is the beginning, or, in an answer, the end.
type Position []byte

// HistoryQuery asks for versions, newest first: those of one record, of all
// records of a type where Key has no id, or of the whole site where Key is zero.
type HistoryQuery struct {
	Key Key
	// Types are those to tell of in the history of the whole site; nil: all.
	Types []string
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
	// Included are the records that the query's Includes ask for beside these, each
	// once; IncludedCut tells that MaxIncluded left some out.
	Included    []Record
	IncludedCut bool
	// Total is the number of records on all pages, or UnknownTotal.
	Total int64
	// Next is where the following page starts, nil on the last one.
	Next Position
}
