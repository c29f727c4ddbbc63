// Package search parses the query string of a FHIR search into a checked Query, in the terms of the
// storage contract, and encrypts the positions in page tokens. It depends on neither HTTP nor a
// storage engine.
package search

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The default of _count in matches per page, and its maximum at a Site that does not set
// limits.maxPageSize. A larger _count is reduced to the maximum.
const (
	DefaultCount = 20
	MaxCount     = 1000
)

// Query is a search, history or read whose parameters are valid.
type Query struct {
	// Types are the resource types to search.
	Types []string
	// Where is the condition that a record must meet to match. nil means that all records match.
	Where store.Condition
	// ByType maps a type to a condition that records of the type must meet in addition to Where. It may
	// be nil.
	ByType map[string]store.Condition
	// Sort are the sort keys of the matches, the most significant one first.
	Sort []store.Sort
	// Includes are the values of _include and _revinclude, which add records to the matches.
	Includes []store.Include
	// Count is the maximum number of matches per page. 0 returns the total only.
	Count int
	// CountReduced is true if _count was larger than the maximum, to which Count was reduced.
	CountReduced bool
	// Total says whether the matches are counted (_total).
	Total store.TotalMode
	// Elements are the elements of matches to return. If empty, all elements are returned.
	Elements []Element
	// Summary is the part of matches and included records to return.
	Summary Summary
	// PageToken is the token of the page to return, or empty for the first page.
	PageToken string
	// Ignored are the names of unknown parameters that lenient handling ignored.
	Ignored []string

	// ReachedTypes are the types, other than Types, whose records affect the result or are part of
	// it.
	ReachedTypes []string
	// Patients are the ids of the patients of this site in values of the parameter patient.
	Patients []string
	// Near are the places in values of the parameter near.
	Near []store.Near

	// Since, for a history, excludes the versions written before it. The zero time excludes none.
	// ParseEverything also adds this bound to Where.
	Since time.Time
	// At restricts a history to the versions that were current at some time in one of the ranges. nil
	// does not restrict it.
	At []store.TimeRange

	bases []string
	// unintersected is Where before intersectDates: one condition for each value of a search parameter.
	unintersected store.Condition
	// encoded is the normalized query string without the page token. canonical is encoded without
	// _format and _pretty.
	encoded, canonical string
}

const (
	paramPageToken = "_page_token"
	paramFormat    = "_format"
	paramPretty    = "_pretty"
)

// Encode returns the normalized query string for links, with pageToken unless it is empty.
func (q Query) Encode(pageToken string) string {
	switch {
	case pageToken == "":
		return q.encoded
	case q.encoded == "":
		return paramPageToken + "=" + url.QueryEscape(pageToken)
	default:
		return q.encoded + "&" + paramPageToken + "=" + url.QueryEscape(pageToken)
	}
}

// Canonical returns the query string to which a page token is bound: all parameters that affect the
// result except its format.
func (q Query) Canonical() string { return q.canonical }

// appendToQueryString appends a parameter to the normalized query string. Parameters must be
// appended in the order of their names.
func (p *parser) appendToQueryString(name, value string) {
	if name == paramPageToken {
		return
	}
	p.encoded = appendParameter(p.encoded, name, value)
	if name != paramFormat && name != paramPretty {
		p.canonical = appendParameter(p.canonical, name, value)
	}
}

func appendParameter(query []byte, name, value string) []byte {
	if len(query) > 0 {
		query = append(query, '&')
	}
	query = append(append(query, url.QueryEscape(name)...), '=')
	return append(query, url.QueryEscape(value)...)
}

// Error is an error in one parameter of a query.
type Error struct {
	// Parameter is the name of the parameter as sent, with its modifier. It is empty if the error
	// is in the query as a whole.
	Parameter string
	// Problem says what is wrong and how to correct it.
	Problem string
}

func (e Error) Error() string {
	if e.Parameter == "" {
		return e.Problem
	}
	return "parameter " + r4.Quote(e.Parameter) + ": " + e.Problem
}

// Errors are the errors in a query.
type Errors []Error

func (e Errors) Error() string {
	sentences := make([]string, len(e))
	for i, each := range e {
		sentences[i] = each.Error()
	}
	return strings.Join(sentences, "; ")
}

// sortedNames lists the supported names for an error message.
func sortedNames[V any](known map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}
