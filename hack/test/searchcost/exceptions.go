package searchcost

import (
	"slices"
	"strings"
)

// A search may touch pagesPerSearch pages, and pagesPerRecord pages for each record that it returns.
// Queries with an exception may touch more pages.
const (
	pagesPerSearch = 200
	pagesPerRecord = 20
)

// exception is a class of queries that may touch more pages than other queries.
type exception struct {
	// name is the name of the row in docs/decisions/search-access-paths.md that has the reason.
	name string
	// applies reports whether a query is of the class.
	applies func(Query) bool
	// pagesPerPatient limits the pages that such a query touches, for each Patient of the practice.
	pagesPerPatient float64
}

// exceptions are the classes. The first class that applies to a query counts. No class applies to a
// query with one condition and no total, in the order of creation, unless the condition is a chain,
// _has, :contains or :missing.
var exceptions = []exception{
	{"total", func(q Query) bool { return q.values.Get("_total") != "none" }, 8},
	{"`:contains`", func(q Query) bool { return q.hasModifier("contains") }, 8},
	{"`:missing`", func(q Query) bool { return q.hasModifier("missing") }, 4},
	{"chain, `_has`", Query.isRelated, 2},
	{"sorted", func(q Query) bool { return q.values.Has("_sort") }, 5},
	{"several filters", func(q Query) bool { return q.filters() > 1 }, 8},
}

// exceptionOf returns the exception of a query, or nil.
func exceptionOf(q Query) *exception {
	i := slices.IndexFunc(exceptions, func(e exception) bool { return e.applies(q) })
	if i < 0 {
		return nil
	}
	return &exceptions[i]
}

// Exception returns the name of the class of queries that a query belongs to, or "" if there is none.
func (q Query) Exception() string {
	if e := exceptionOf(q); e != nil {
		return e.name
	}
	return ""
}

// most returns the maximum number of pages of a query that finds a number of records.
func (q Query) most(patients, records int) int {
	most := pagesPerSearch + pagesPerRecord*records
	if e := exceptionOf(q); e != nil {
		most += int(e.pagesPerPatient * float64(patients))
	}
	return most
}

// isWithinBound reports whether a query touched no more pages than a query without an exception may
// touch.
func isWithinBound(pages, records int) bool { return pages <= pagesPerSearch+pagesPerRecord*records }

// hasModifier reports whether a condition of the query has a modifier.
func (q Query) hasModifier(modifier string) bool {
	for name := range q.values {
		if strings.HasSuffix(name, ":"+modifier) {
			return true
		}
	}
	return false
}

func (q Query) isRelated() bool {
	for name := range q.values {
		if strings.HasPrefix(name, "_has:") || strings.Contains(name, ".") {
			return true
		}
	}
	return false
}

// filters returns the number of conditions of the query.
func (q Query) filters() (n int) {
	for name, values := range q.values {
		switch name {
		case "_sort", "_count", "_total", "_include", "_revinclude":
		default:
			n += len(values)
		}
	}
	return n
}
