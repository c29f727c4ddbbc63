// Package list parses the query parameters of the AHDS facade's lists and writes their responses. A
// response is a numbered page of a list that is sorted by one field and filtered by several
// parameters. The type parameter C is what a filter returns for its value: a condition of a store
// or a test of an object.
package list

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/suggest"
)

// The default and maximum number of items of a page. A larger pageSize is refused. Contract 4.2.
const (
	DefaultPageSize = 10
	MaxPageSize     = 100
	// maxPage is a page number beyond the end of every list. A larger page number is replaced by
	// maxPage, because numbers in JSON are exact only up to 2^53.
	maxPage = 1 << 53 / MaxPageSize
)

// Ascending and Descending are the values of sortOrder.
const (
	Ascending  = "asc"
	Descending = "desc"
)

// Filter is a query parameter that selects items of a list.
type Filter[C any] struct {
	Name string
	// Parse returns the condition for a value. If the value is invalid, problem is the message for the
	// client, else it is empty.
	Parse func(value string) (condition C, problem string)
	// Schema is the JSON Schema of valid values.
	Schema schema.JSON
}

// The schemas of the values that Bool, UUID and Instant parse, and of any text.
var (
	BoolSchema    = schema.Boolean().Schema
	UUIDSchema    = schema.UUID().Schema
	InstantSchema = schema.Instant().Schema
	TextSchema    = schema.JSON{"type": "string"}
)

// Parameter is a query parameter of a list.
type Parameter struct {
	Name   string
	Schema schema.JSON
}

// Parameters returns the parameters that the list supports.
func (o Options[C]) Parameters() []Parameter {
	all := []Parameter{
		{"page", schema.JSON{"type": "integer", "minimum": 0, "default": 0}},
		{"pageSize", schema.JSON{"type": "integer", "minimum": 1, "maximum": MaxPageSize, "default": DefaultPageSize}},
	}
	if !o.Fixed {
		all = append(all,
			Parameter{"sortBy", schema.JSON{"type": "string", "enum": o.SortBy}},
			Parameter{"sortOrder", schema.JSON{"type": "string", "enum": []string{Ascending, Descending}, "default": Ascending}})
	}
	for _, f := range o.Filters {
		all = append(all, Parameter{f.Name, f.Schema})
	}
	return all
}

// Options are the parameters that a list supports.
type Options[C any] struct {
	// SortBy are the fields that sortBy supports.
	SortBy []string
	// Default is the sort field of a request without sortBy. If empty, the list is sorted by
	// creation.
	Default string
	// Fixed is set if the list has only one order, and does not support sortBy and sortOrder.
	Fixed   bool
	Filters []Filter[C]
}

// Request is the parsed parameters of a list.
type Request[C any] struct {
	Page, PageSize int
	// SortBy is one of Options.SortBy. If empty, the list is sorted by creation.
	SortBy     string
	Descending bool
	// Where are the conditions of the filters. All of them must match.
	Where []C
}

// Skip returns the number of items before the page.
func (r Request[C]) Skip() int { return r.Page * r.PageSize }

// paging are the parameters of every list. sorting are those of lists without a fixed order.
var (
	paging  = []string{"page", "pageSize"}
	sorting = []string{"sortBy", "sortOrder"}
)

// Parse parses the parameters of a list. Errors: fielderror.Errors.
func Parse[C any](query url.Values, options Options[C]) (Request[C], error) {
	request := Request[C]{PageSize: DefaultPageSize, SortBy: options.Default}
	var errs fielderror.Errors
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			errs = append(errs, wrong(name, fielderror.CodeRepeated, "the parameter is repeated; send it once"))
			continue
		}
		if f, ok := request.set(name, query.Get(name), options); !ok {
			errs = append(errs, f)
		}
	}
	return request, errs.Err()
}

// set parses one parameter. f is the error of the parameter. It has no meaning if ok is set.
func (r *Request[C]) set(name, value string, options Options[C]) (f fielderror.Error, ok bool) {
	if options.Fixed && slices.Contains(sorting, name) {
		return options.unknown(name), false
	}
	switch name {
	case "page":
		r.Page, ok = whole(value, 0, maxPage)
		return wrong(name, fielderror.CodeOutOfRange, fielderror.Quote(value)+" is not a page number; send 0 or a larger whole number"), ok
	case "pageSize":
		r.PageSize, ok = ParsePageSize(value, MaxPageSize)
		return wrong(name, fielderror.CodeOutOfRange, fielderror.Quote(value)+" is not a page size; send a whole number from 1 to 100"), ok
	case "sortBy":
		r.SortBy = value
		return wrong(name, fielderror.CodeInvalidValue, fielderror.Quote(value)+" is not a field to sort by; send one of "+strings.Join(options.SortBy, ", ")),
			slices.Contains(options.SortBy, value)
	case "sortOrder":
		r.Descending = value == Descending
		return wrong(name, fielderror.CodeInvalidValue, fielderror.Quote(value)+" is not an order; send asc or desc"), r.Descending || value == Ascending
	}
	at := slices.IndexFunc(options.Filters, func(f Filter[C]) bool { return f.Name == name })
	if at < 0 {
		return options.unknown(name), false
	}
	condition, problem := options.Filters[at].Parse(value)
	if problem != "" {
		return wrong(name, fielderror.CodeInvalidValue, problem), false
	}
	r.Where = append(r.Where, condition)
	return fielderror.Error{}, true
}

// unknown returns the error of a parameter that the list does not support.
func (o Options[C]) unknown(name string) fielderror.Error {
	return wrong(name, fielderror.CodeUnknownParameter, fielderror.Quote(name)+" is not a parameter of this list"+suggest.Among(name, o.names(), "known names are"))
}

func (o Options[C]) names() []string {
	names := slices.Clone(paging)
	if !o.Fixed {
		names = append(names, sorting...)
	}
	for _, f := range o.Filters {
		names = append(names, f.Name)
	}
	return names
}

// ParseNone returns an error for each parameter of a request that supports none. Errors:
// fielderror.Errors.
func ParseNone(query url.Values) error {
	var errs fielderror.Errors
	for _, name := range slices.Sorted(maps.Keys(query)) {
		errs = append(errs, wrong(name, fielderror.CodeUnknownParameter, fielderror.Quote(name)+" is not supported; send no query parameters"))
	}
	return errs.Err()
}

func wrong(name, code, detail string) fielderror.Error {
	return fielderror.Error{In: fielderror.Parameter, At: name, Code: code, Detail: detail}
}

// ParsePageSize parses a pageSize from 1 to most, in digits without a sign or leading zeros.
func ParsePageSize(text string, most int) (size int, ok bool) { return whole(text, 1, most) }

var wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// whole parses a whole number from least to most. With maxPage as most it replaces larger numbers
// by maxPage.
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
