package search

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
)

// Options are the options of the functions that parse a query. The zero value parses a search for
// all types.
type Options struct {
	// Type is the name of the resource type in the path. It is empty if the path has none.
	Type string
	// Compartment, if not nil, restricts a search to the members of the compartment.
	Compartment *Compartment
	// Everything, for ParseEverything, is the id of the Patient.
	Everything string
	// SortByDate is set to accept _sort=date, with the meaning of _lastUpdated, if the type has no
	// parameter date (contract 4.1).
	SortByDate bool
	// Lenient is set to ignore unknown parameters of a search (Prefer: handling=lenient). If false,
	// unknown parameters are errors.
	Lenient bool
	// Now is the current time. The prefix ap widens a date by a tenth of its distance from Now.
	Now time.Time
	// Zone is the time zone of times without a zone, and of dates without a time in _lastUpdated,
	// _since and _at. Dates without a time in other parameters are in UTC. nil means UTC.
	Zone *time.Location
	// Bases are the addresses of the site. A reference below one of them is treated as the relative
	// reference to the same record.
	Bases []string
	// MaxCount is the maximum of _count at the Site. A larger value is reduced to it. Default: the
	// constant MaxCount.
	MaxCount int
}

// The limits of one query. A query that exceeds a limit other than maxErrors is rejected.
const (
	// maxParameters is the maximum number of parameters, counting repetitions.
	maxParameters = 100
	// maxValues is the maximum number of values of all parameters together. Values that a parameter
	// expands to, such as the codes of a value set, count too.
	maxValues = 1000
	// maxDepth is the maximum number of links of a chain, and the maximum nesting of _has.
	maxDepth = 5
	// maxValueSize is the maximum length in bytes of one value with all its alternatives, and
	// maxItemSize that of one alternative.
	maxValueSize = 64 << 10
	maxItemSize  = 2 << 10
	// maxErrors is the maximum number of reported errors. Further errors are omitted.
	maxErrors = 50
)

// Parse parses the parameters of a search. Errors: Errors.
func Parse(values url.Values, opts Options) (Query, error) {
	return parse(values, opts, searchResultParameters, true)
}

// ParseCriteria parses the criteria of a conditional interaction: at least one search parameter,
// and no result parameters. opts.Lenient is not used, because other records would match if a
// criterion were ignored. R4 http.html#ccreate. Errors: Errors.
func ParseCriteria(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	query, err := parse(values, opts, nil, true)
	if err == nil && query.Where == nil {
		return Query{}, Errors{{Problem: "no search parameter has a value; give at least one of " + strings.Join(namesOf(query.Types), ", ")}}
	}
	return query, err
}

// ParseHistory parses the parameters of a history. opts.Lenient is not used, because a history
// cannot report what it ignored: an entry with an outcome needs search.mode, which only a searchset
// may have (R4 bundle.html, bdl-2). Errors: Errors.
func ParseHistory(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	return parse(values, opts, historyResultParameters, false)
}

// ParseRead parses the parameters of a read. opts.Lenient is not used, because the response is the
// resource alone and cannot report what was ignored. Errors: Errors.
func ParseRead(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	return parse(values, opts, readResultParameters, false)
}

// parser builds a Query from its parameters.
type parser struct {
	Options
	query Query
	// resultParameters are the result parameters of the interaction. Search parameters are only
	// accepted if allowsFilters is set.
	resultParameters map[string]resultParameter
	allowsFilters    bool
	where            store.All
	// values counts the values of the query, up to maxValues.
	values int
	// reaches has the types whose records the query reads (Query.ReachedTypes).
	reaches map[string]bool
	// totalOnly is set by _summary=count.
	totalOnly bool
	// encoded is the normalized query string, without the page token. canonical is the part of it to
	// which a page token is bound.
	encoded, canonical []byte
}

func parse(values url.Values, opts Options, resultParameters map[string]resultParameter, allowsFilters bool) (Query, error) {
	p := parser{Options: opts, resultParameters: resultParameters, allowsFilters: allowsFilters, reaches: map[string]bool{}, query: Query{
		Sort:  []store.Sort{{Field: store.SortCreated, Descending: true}},
		Count: DefaultCount,
		bases: opts.Bases,
	}}
	if err := p.parse(values); err != nil {
		return Query{}, err
	}
	if p.Everything != "" && !p.query.Since.IsZero() {
		p.where = append(p.where, store.UpdatedIn{From: p.query.Since})
	}
	if len(p.where) > 0 {
		p.query.unintersected, p.query.Where = p.where, intersectDates(p.query.Types, p.where)
		p.collectMentioned(p.where)
	}
	for _, searched := range p.query.Types {
		delete(p.reaches, searched)
	}
	p.query.ReachedTypes = slices.Sorted(maps.Keys(p.reaches))
	if p.totalOnly {
		p.query.Count, p.query.CountReduced = 0, false
	}
	if p.query.Count == 0 {
		p.query.Total = store.TotalAccurate
	}
	p.query.encoded, p.query.canonical = string(p.encoded), string(p.canonical)
	return p.query, nil
}

// parse parses all parameters. The types come first, because they decide which parameters are
// known.
func (p *parser) parse(values url.Values) error {
	if given := countParameters(values); given > maxParameters {
		return Errors{{Problem: fmt.Sprintf("there are %d parameters; give at most %d, and alternatives as one value, separated by commas", given, maxParameters)}}
	}
	if err := p.types(values); err != nil {
		return Errors{{Parameter: paramType, Problem: err.Error()}}
	}
	if p.Compartment != nil {
		if err := p.restrictTo(p.Compartment); err != nil {
			return Errors{{Parameter: paramType, Problem: err.Error()}}
		}
	}
	if p.Everything != "" {
		p.restrictToEverything()
	}
	var wrong Errors
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := nonEmpty(values[name])
		if len(given) == 0 {
			continue
		}
		if err := p.parameter(name, given); err != nil {
			wrong = append(wrong, Error{Parameter: name, Problem: err.Error()})
		}
		if len(wrong) == maxErrors {
			break
		}
	}
	if len(wrong) == 0 {
		if err := p.checkCombination(); err != nil {
			wrong = Errors{*err}
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// countParameters returns the number of parameters, counting repetitions.
func countParameters(values url.Values) int {
	given := 0
	for _, each := range values {
		given += len(each)
	}
	return given
}

// nonEmpty drops empty values, which count as absent. R4 search.html#errors.
func nonEmpty(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
}

// parameter parses one parameter. values has one value for each repetition of the parameter.
func (p *parser) parameter(name string, values []string) error {
	base, modifier, modified := strings.Cut(name, ":")
	known, isResultParameter := p.resultParameters[base]
	if isResultParameter {
		if modified && !slices.Contains(known.modifiers, modifier) {
			return fmt.Errorf("the modifier %s is not supported; %s", r4.Quote(modifier), describeModifiers(known.modifiers))
		}
		if len(values) > 1 && !known.repeatable {
			return errors.New("the parameter is given more than once; give it once")
		}
	}
	for i, value := range values {
		if len(value) > maxValueSize {
			return fmt.Errorf("the value is longer than %d KiB; give fewer alternatives", maxValueSize>>10)
		}
		var err error
		normalized := value
		switch {
		case !utf8.ValidString(value): // it would match nothing, so a conditional create would always create
			err = fmt.Errorf("%s is not valid UTF-8; percent-encode the text in UTF-8", r4.Quote(value))
		case isResultParameter:
			normalized, err = known.parse(p, modifier, value)
		default:
			err = p.addFilter(name, value)
		}
		var unknown *unknownError
		if errors.As(err, &unknown) && p.Lenient {
			p.query.Ignored = append(p.query.Ignored, name)
			return nil
		}
		if err != nil {
			return within(position("repetition", i, len(values)), err)
		}
		p.appendToQueryString(name, normalized)
	}
	return nil
}

// addFilter parses one value of a search parameter and adds its condition to the query.
func (p *parser) addFilter(name, value string) error {
	if !p.allowsFilters {
		of := "this interaction"
		if p.Everything != "" {
			of = p.subject()
		}
		return &unknownError{name: name, of: of, known: slices.Sorted(maps.Keys(p.resultParameters))}
	}
	condition, err := p.parseFilter(scope{types: p.query.Types}, name, value)
	if err != nil {
		return err
	}
	p.where = append(p.where, condition)
	return nil
}

// subject names, for error messages, what the query is about: $everything, the types that it names, or
// all types of the site.
func (p *parser) subject() string {
	switch {
	case p.Everything != "":
		return "$everything"
	case p.Type != "":
		return p.Type
	case p.Compartment != nil:
		return strings.Join(p.query.Types, " and ")
	case len(p.query.Types) < len(r4.Types):
		return strings.Join(p.query.Types, " and ")
	default:
		return "all resource types"
	}
}

// unsupported are parameters of R4 that this server does not have. They are not misspellings, so
// messages suggest no similar name.
var unsupported = []string{"_content", "_filter", "_list", "_query", "_text"}

// unknownError is the error of an unknown parameter. of names what the parameter is unknown for. It is
// the only error that lenient handling ignores.
type unknownError struct {
	name, of string
	known    []string
}

func (e *unknownError) Error() string {
	message := r4.Quote(e.name) + " is not known for " + e.of
	if slices.Contains(unsupported, e.name) {
		return message + "; supported parameters: " + strings.Join(e.known, ", ")
	}
	return message + suggest.Among(e.name, e.known, "supported parameters:")
}

func within(place string, err error) error {
	if place == "" {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}

// position returns the position of one of several items for an error message, or "" for one item.
func position(what string, i, of int) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf("%s %d of %d", what, i+1, of)
}

// describeModifiers lists the supported modifiers for an error message.
func describeModifiers(modifiers []string) string {
	if len(modifiers) == 0 {
		return "supported modifiers: none"
	}
	return "supported modifiers: " + strings.Join(modifiers, ", ")
}
