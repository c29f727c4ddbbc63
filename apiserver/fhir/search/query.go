// Package search turns the query string of a FHIR search into a checked Query, in the
// terms of the storage contract, and seals the positions that page tokens carry. It
// knows neither HTTP nor any storage.
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

// Bounds of _count.
const (
	DefaultCount = 20
	MaxCount     = 1000
)

// Query is a checked search.
type Query struct {
	// Types are the resource types to search.
	Types []string
	// Where is what the records must meet, nil for nothing.
	Where store.Condition
	// ByType is what the records of a type must meet in addition, by type; nil for nothing.
	ByType map[string]store.Condition
	// Sort is the order of the matches.
	Sort []store.Sort
	// Includes are what to answer with beside the matches.
	Includes []store.Include
	// Count is the most matches to return; 0 asks for the total only.
	Count int
	// CountReduced reports whether _count asked for more than MaxCount.
	CountReduced bool
	Total        store.TotalMode
	// Elements, when not empty, are the elements to return of the matches.
	Elements []Element
	// Summary is the part to return of all resources.
	Summary Summary
	// PageToken continues an earlier page.
	PageToken string
	// Ignored are the names of unknown parameters that lenient handling passed over.
	Ignored []string

	// Reaches are the types, beside those to search, whose records decide on the
	// answer or are in it.
	Reaches []string
	// Patients are the ids of the patients of this site that patient= names.
	Patients []string
	// Near are the places that matches are to be near to.
	Near []store.Near

	// Since, of a history, leaves out the versions written before it.
	Since time.Time
	// At, when not nil, holds the periods in one of which a version of a history
	// must have been current.
	At []store.TimeRange

	bases []string
	// written is Where as it was written, one condition for each parameter.
	written store.Condition
	// What was understood as a query string, without the page token; canonical also
	// without what decides on the format alone.
	encoded, canonical string
}

const (
	paramPageToken = "_page_token"
	paramFormat    = "_format"
	paramPretty    = "_pretty"
)

// Encode writes what was understood as a query string, for links, with the page
// token given or, when that is empty, with none.
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

// Canonical is the part of the query that a page token is bound to: everything
// that decides on the answer but its format.
func (q Query) Canonical() string { return q.canonical }

// understand notes a parameter as it was understood. It is called in the order of names.
func (p *parser) understand(name, value string) {
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
