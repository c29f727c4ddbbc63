// Package search turns the query string of a FHIR search into a checked Query,
// and seals the positions that page tokens carry. It knows neither HTTP nor
// storage.
package search

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// Bounds of _count.
const (
	DefaultCount = 20
	MaxCount     = 1000
)

// Query is a checked search on one type. Its conditions must all hold.
type Query struct {
	// IDs, when not nil, are the ids to choose from, in any spelling.
	IDs []string
	// Updated holds conditions on meta.lastUpdated: for each element, one of its
	// ranges must contain it.
	Updated [][]Range
	// Since, of a history, leaves out the versions written before it.
	Since time.Time
	// At, when not nil, holds the periods in one of which a version of a history
	// must have been current.
	At []Range
	// Tokens are conditions on token parameters.
	Tokens []TokenCondition
	Sort   Sort
	// Count is the most matches to return; 0 asks for the total only.
	Count int
	Total Total
	// Elements, when not empty, are the elements to return.
	Elements []string
	// PageToken continues an earlier page.
	PageToken string
	// Ignored are the names of unknown parameters that lenient handling passed over.
	Ignored []string

	understood url.Values
}

// Sort is an order of matches.
type Sort struct {
	Field      SortField
	Descending bool
}

// SortField is what matches are ordered by.
type SortField int

// The sort fields.
const (
	SortCreated SortField = iota
	SortUpdated
	SortID
)

// Total says how much a client wants to know of the number of matches.
type Total int

// The wishes for a total.
const (
	TotalWhenFree Total = iota
	TotalAccurate
	TotalNone
)

// Range is half-open: From ≤ t < Until. A zero bound is infinite.
type Range struct {
	From, Until time.Time
}

const (
	paramPageToken = "_page_token"
	paramFormat    = "_format"
	paramPretty    = "_pretty"
)

// Encode writes what was understood as a query string, for links, with the page
// token given or, when that is empty, with none.
func (q Query) Encode(pageToken string) string {
	values := maps.Clone(q.understood)
	delete(values, paramPageToken)
	if pageToken != "" {
		values.Set(paramPageToken, pageToken)
	}
	return values.Encode()
}

// Canonical is the part of the query that a page token is bound to: everything
// that decides on the answer but its format.
func (q Query) Canonical() string {
	values := maps.Clone(q.understood)
	for _, name := range []string{paramPageToken, paramFormat, paramPretty} {
		delete(values, name)
	}
	return values.Encode()
}

// Error is one thing wrong with a query.
type Error struct {
	// Parameter as it was given, with its modifier.
	Parameter string
	// Problem says what was wrong and what would be right.
	Problem string
}

func (e Error) Error() string { return "search parameter " + r4.Quote(e.Parameter) + ": " + e.Problem }

// Errors are all that is wrong with a query.
type Errors []Error

func (e Errors) Error() string {
	sentences := make([]string, len(e))
	for i, each := range e {
		sentences[i] = each.Error()
	}
	return strings.Join(sentences, "; ")
}

// list shows names to choose from.
func list[V any](known map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}
