// Package list reads the query parameters of the AHDS facade's lists and writes their
// answers: numbered pages, sorted by one field, filtered by others. What a filter makes
// of its value is the type parameter's: a condition of a store, or a test of an object.
package list

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// The bounds of pages. Contract 4.2.
const (
	DefaultPageSize = 10
	MaxPageSize     = 100
	// maxPage is past every end, and a number that JSON can say.
	maxPage = 1 << 53 / MaxPageSize
)

// Ascending and Descending are the values of sortOrder.
const (
	Ascending  = "asc"
	Descending = "desc"
)

// Filter is a parameter that chooses from a list.
type Filter[C any] struct {
	Name string
	// Parse makes a condition of the value, or tells what is wrong with it.
	Parse func(value string) (condition C, problem string)
}

// Options say what a list can be asked.
type Options[C any] struct {
	// SortBy are the fields to sort by.
	SortBy []string
	// Default is the field that a list is sorted by when nothing is said; empty: by creation.
	Default string
	Filters []Filter[C]
}

// Request is what a list is asked.
type Request[C any] struct {
	Page, PageSize int
	// SortBy is one of the options' or empty: by creation.
	SortBy     string
	Descending bool
	// Where are the conditions of the filters that were given.
	Where []C
}

// Skip is how many entries come before the page.
func (r Request[C]) Skip() int { return r.Page * r.PageSize }

// parameters of every list.
var parameters = []string{"page", "pageSize", "sortBy", "sortOrder"}

// Read reads the parameters of a list. The error is of type fault.Faults.
func Read[C any](query url.Values, options Options[C]) (Request[C], error) {
	request := Request[C]{PageSize: DefaultPageSize, SortBy: options.Default}
	var faults fault.Faults
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			faults = append(faults, wrong(name, fault.CodeRepeated, "is given more than once; give it once"))
			continue
		}
		if f, ok := request.take(name, query.Get(name), options); !ok {
			faults = append(faults, f)
		}
	}
	return request, faults.Err()
}

// take reads one parameter.
func (r *Request[C]) take(name, value string, options Options[C]) (f fault.Fault, ok bool) {
	switch name {
	case "page":
		r.Page, ok = whole(value, 0, maxPage)
		return wrong(name, fault.CodeOutOfRange, fault.Quote(value)+" is not a page number; give a whole number from 0"), ok
	case "pageSize":
		r.PageSize, ok = whole(value, 1, MaxPageSize)
		return wrong(name, fault.CodeOutOfRange, fault.Quote(value)+" is not a page size; give a whole number from 1 to 100"), ok
	case "sortBy":
		r.SortBy = value
		return wrong(name, fault.CodeInvalidValue, fault.Quote(value)+" is nothing to sort by; give one of "+strings.Join(options.SortBy, ", ")),
			slices.Contains(options.SortBy, value)
	case "sortOrder":
		r.Descending = value == Descending
		return wrong(name, fault.CodeInvalidValue, fault.Quote(value)+" is not an order; give asc or desc"), r.Descending || value == Ascending
	}
	at := slices.IndexFunc(options.Filters, func(f Filter[C]) bool { return f.Name == name })
	if at < 0 {
		return wrong(name, fault.CodeUnknownParameter, fault.Quote(name)+" is not a parameter here"+fault.Nearest(name, options.names())), false
	}
	condition, problem := options.Filters[at].Parse(value)
	if problem != "" {
		return wrong(name, fault.CodeInvalidValue, problem), false
	}
	r.Where = append(r.Where, condition)
	return fault.Fault{}, true
}

func (o Options[C]) names() []string {
	names := slices.Clone(parameters)
	for _, f := range o.Filters {
		names = append(names, f.Name)
	}
	return names
}

// ReadNone refuses all parameters, where none are known.
func ReadNone(query url.Values) error {
	var faults fault.Faults
	for _, name := range slices.Sorted(maps.Keys(query)) {
		faults = append(faults, wrong(name, fault.CodeUnknownParameter, fault.Quote(name)+" is not a parameter here; there are none"))
	}
	return faults.Err()
}

func wrong(name, code, detail string) fault.Fault {
	return fault.Fault{In: fault.Parameter, At: name, Code: code, Detail: detail}
}

var wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// whole reads a whole number within bounds. One that is too large to be a number of this
// machine is larger than any bound but the largest.
func whole(text string, least, most int) (int, bool) {
	if !wholeForm.MatchString(text) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil && most == maxPage {
		return maxPage, true
	}
	return min(n, maxPage), err == nil && n >= least && (n <= most || most == maxPage)
}
