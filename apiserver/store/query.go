package store

import (
	"time"
)

// SortField is a key by which a query can order its results.
type SortField int

// The sort fields. Records that are equal in all keys of an order are ordered by creation, in the
// direction of the last key. Records created in the same millisecond have an order that depends on
// the engine but does not change.
const (
	SortCreated SortField = iota
	SortUpdated
	SortID
	// SortText orders by the texts of a parameter. If a record has several texts, the text that sorts
	// first in the direction of the key counts. Records without a text come last in both directions.
	SortText
	// SortPeriod orders by the starts of the periods of a parameter, otherwise like SortText.
	SortPeriod
)

// Sort is one key of an order of results. The zero value is by creation, oldest first.
type Sort struct {
	Field SortField
	// Param is the parameter of SortText and SortPeriod.
	Param      string
	Descending bool
}

// TotalMode selects when a page has the number of all matches. R4 search.html#total.
type TotalMode int

const (
	// TotalWhenFree returns the total if the engine can count the matches at little cost. Each engine
	// has its own limit of that cost. Pages with Query.After never have the total.
	TotalWhenFree TotalMode = iota
	// TotalAccurate always returns the exact total.
	TotalAccurate
	// TotalNone never returns the total.
	TotalNone
)

// TimeRange is the half-open range From ≤ t < Until. A zero bound is infinite.
type TimeRange struct {
	From, Until time.Time
}

// Contains reports whether t is in the range.
func (r TimeRange) Contains(t time.Time) bool {
	return (r.From.IsZero() || !t.Before(r.From)) && (r.Until.IsZero() || t.Before(r.Until))
}

// Intersection returns the times that are in both ranges.
func (r TimeRange) Intersection(other TimeRange) TimeRange {
	if r.From.Before(other.From) { // a zero From is before every other time
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

// Overlaps reports whether the range and [from, until) have a time in common. A zero until is
// infinite.
func (r TimeRange) Overlaps(from, until time.Time) bool {
	return (until.IsZero() || r.From.Before(until)) && (r.Until.IsZero() || from.Before(r.Until))
}

// Query selects a page of live records.
type Query struct {
	// Types are the record types to search.
	Types []string
	// Where is the condition that all records must meet. If it is nil, all records of the types match.
	Where Condition
	// ByType maps a type to a condition that its records must meet in addition to Where.
	ByType map[string]Condition
	// Access restricts the search to what the caller may see. If it is nil, nothing is hidden.
	Access Access
	// Bases are the base URLs of this site. A reference whose base is one of Bases is to a record of
	// this site.
	Bases []string
	// Sort is the order of the matches, the most significant key first. If it is empty, matches are
	// ordered by creation, the oldest first.
	Sort []Sort
	// Count is the maximum number of matches on the page. Engines may return fewer to limit the size
	// of the page. With 0, only the total is returned.
	Count int
	// After is the Page.Next of the previous page. If it is nil, the page is the first one.
	After Position
	// Skip is the number of matches to omit after the position After, for lists with numbered pages.
	// The cost grows with Skip. A page past the end is empty.
	Skip int
	// Total selects when the page has the number of all matches. The zero value is TotalWhenFree.
	Total TotalMode
	// MaxLag, if not 0, lets a read replica of the database answer. The page may then miss writes that
	// were acknowledged up to MaxLag before the search. Page.Lag has the lag of the page. An engine
	// ignores MaxLag if it has no read replicas, if Consistent is set, or if ByTime is true.
	MaxLag time.Duration
	// Includes select related records to return with the page.
	Includes []Include
	// MaxIncluded is the maximum number of included records on the page. At the limit, further records
	// are left out and Page.IncludedCut is set. With 0, no record is included.
	MaxIncluded int
	// Consistent makes the page as fresh as Get: it sees all writes that any replica acknowledged
	// before the call. An engine whose replicas see each other's writes with a delay waits for these
	// writes. To know what to wait for, it reads the metadata of all records of the site.
	Consistent bool
}

// WhereOf returns the condition that the records of a type must meet by Where and ByType. It is nil
// if there is none.
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

// Include selects records to which the matches of a page refer, or that refer to the matches.
// R4 search.html#include.
type Include struct {
	// Reverse selects the records that refer to the matches, as _revinclude does.
	Reverse bool
	// Type is the type of the referring records. If it is empty, all types count.
	Type string
	// Param is the parameter of the references. If it is empty, all parameters count.
	Param string
	// Target is the type of the records referred to. If it is empty, all types count.
	Target string
	// Iterate applies the Include to included records too.
	Iterate bool
}

// Position is where a page ended. It is opaque to all but the engine that made it, and is valid
// only for the query for which it was made. nil is the start of the first page.
type Position []byte

// HistoryQuery selects a page of versions, newest first.
type HistoryQuery struct {
	// Key selects the history of one record. If its ID is empty, Key selects the history of all
	// records of the type. The zero Key selects the history of the whole site.
	Key Key
	// Types are the record types in the history of the whole site. If it is nil, the history has
	// all types.
	Types []string
	// Deletions adds tombstones to the history. If it is false, they are left out.
	Deletions bool
	// Since, if not zero, leaves out versions written before it.
	Since time.Time
	// Current, if not nil, selects the versions that were the newest one of their record at some time
	// in one of the ranges, as _at does.
	Current []TimeRange
	// Access restricts which versions are returned. If it is nil, nothing is hidden. The labels of
	// the version and those of the newest version of its record must both meet the condition of the
	// type. A tombstone has the labels of the version before it. Conditions consist of All, Any, Not,
	// HasLabel and LinksTo.
	Access Access
	// Bases are the base URLs of this site, as in Query.
	Bases []string
	// Count is the maximum number of versions on the page, as in Query.
	Count int
	// After is the Page.Next of the previous page. If it is nil, the page is the first one.
	After Position
}

// UnknownTotal is the Page.Total of a query with TotalNone. It is also that of a query with
// TotalWhenFree if the query has After, or if counting would have been too costly for the engine.
const UnknownTotal int64 = -1

// Page is one page of results.
type Page struct {
	// Records are the matches, in the order of the query.
	Records []Record
	// Included are the records that the Includes of the query select, each once and without those
	// in Records.
	Included []Record
	// IncludedCut reports whether included records were left out, because of MaxIncluded or the size
	// of the page.
	IncludedCut bool
	// Total is the number of matches on all pages, or UnknownTotal.
	Total int64
	// Next is the position from which the next page continues. It is nil on the last page.
	Next Position
	// Lag is 0 unless a read replica answered the query, and at most Query.MaxLag. The page has all
	// writes that were acknowledged earlier than Lag before the search. It may have later writes too.
	Lag time.Duration
}
