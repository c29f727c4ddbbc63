package search

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Options say what a query is about and how it is to be read.
type Options struct {
	// Type is the name of the resource type, empty for the whole site or a whole compartment.
	Type string
	// Compartment, unless nil, restricts a search to its members.
	Compartment *Compartment
	// SortByDate takes _sort=date for _lastUpdated where there is no such parameter,
	// as the contract has it (4.1).
	SortByDate bool
	// Lenient passes over unknown parameters of a search (Prefer: handling=lenient).
	Lenient bool
	// Now is the clock for approximate dates.
	Now time.Time
	// Zone is that of times without one; nil is UTC.
	Zone *time.Location
	// Bases are the site's own addresses: what is below is what relative references
	// refer to.
	Bases []string
}

// Bounds of what one query may ask for.
const (
	// maxParameters bounds the parameters, each counted as often as it is given.
	maxParameters = 100
	// maxConditions bounds the values to compare with, of all parameters together.
	maxConditions = 1000
	// maxDepth bounds the links of a chain, and how deep _has may be nested.
	maxDepth = 5
	// maxValue bounds the length of a value with all its alternatives, maxItem that
	// of one of them.
	maxValue = 64 << 10
	maxItem  = 2 << 10
	// maxErrors bounds how much is said of one query.
	maxErrors = 50
)

// Parse checks the parameters of a search. The error, if any, is of type Errors.
func Parse(values url.Values, opts Options) (Query, error) {
	return parse(values, opts, searchControls, true)
}

// ParseCriteria checks the criteria of a conditional interaction: parameters that
// choose records, at least one. Lenient handling does not apply: criteria that are
// passed over would choose others. R4 http.html#ccreate.
func ParseCriteria(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	query, err := parse(values, opts, nil, true)
	if err == nil && query.Where == nil {
		return Query{}, Errors{{Parameter: "", Problem: "there is none; give at least one of " + strings.Join(namesOf(query.Types), ", ")}}
	}
	return query, err
}

// ParseHistory checks the parameters of a history, of which there are few. Lenient
// handling does not apply: a history has no entry that could tell what was passed over,
// for an outcome is one by its search.mode, which only a search may have (R4 bundle.html,
// bdl-2).
func ParseHistory(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	return parse(values, opts, historyControls, false)
}

// ParseRead checks the parameters of a read. Lenient handling does not apply: the answer
// is the resource alone.
func ParseRead(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	return parse(values, opts, readControls, false)
}

// parser gathers a Query from its parameters.
type parser struct {
	Options
	query Query
	// controls are the parameters that do not choose records; filters tells whether
	// there may be others, that do.
	controls map[string]control
	filters  bool
	where    store.All
	// conditions counts the values to compare with.
	conditions int
	reaches    map[string]bool
	// totalOnly is the wish of _summary=count.
	totalOnly bool
	// encoded and canonical become those of the query.
	encoded, canonical []byte
}

func parse(values url.Values, opts Options, controls map[string]control, filters bool) (Query, error) {
	p := parser{Options: opts, controls: controls, filters: filters, reaches: map[string]bool{}, query: Query{
		Sort:  []store.Sort{{Field: store.SortCreated, Descending: true}},
		Count: DefaultCount,
		bases: opts.Bases,
	}}
	if err := p.parse(values); err != nil {
		return Query{}, err
	}
	if len(p.where) > 0 {
		p.query.written, p.query.Where = p.where, joined(p.query.Types, p.where)
		p.noteRelated(p.where)
	}
	for _, searched := range p.query.Types {
		delete(p.reaches, searched)
	}
	p.query.Reaches = slices.Sorted(maps.Keys(p.reaches))
	if p.totalOnly {
		p.query.Count = 0
	}
	if p.query.Count == 0 {
		p.query.Total = store.TotalAccurate
	}
	p.query.encoded, p.query.canonical = string(p.encoded), string(p.canonical)
	return p.query, nil
}

// parse takes all parameters, the types first: they say which others there are.
func (p *parser) parse(values url.Values) error {
	if given := count(values); given > maxParameters {
		return Errors{{Problem: fmt.Sprintf("there are %d parameters; give at most %d, and alternatives as one value with commas", given, maxParameters)}}
	}
	if err := p.types(values); err != nil {
		return Errors{{Parameter: paramType, Problem: err.Error()}}
	}
	if p.Compartment != nil {
		if err := p.restrict(p.Compartment); err != nil {
			return Errors{{Parameter: paramType, Problem: err.Error()}}
		}
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
		if err := p.whole(); err != nil {
			wrong = Errors{*err}
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// count counts what is given.
func count(values url.Values) int {
	given := 0
	for _, each := range values {
		given += len(each)
	}
	return given
}

// nonEmpty drops empty values: they are as good as absent. R4 search.html#errors.
func nonEmpty(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
}

// parameter takes one parameter with all its values, one for each time it is given.
func (p *parser) parameter(name string, values []string) error {
	base, modifier, modified := strings.Cut(name, ":")
	known, isControl := p.controls[base]
	if isControl {
		if modified && !slices.Contains(known.modifiers, modifier) {
			return fmt.Errorf("the modifier %s is not known here; %s", r4.Quote(modifier), takes(known.modifiers))
		}
		if len(values) > 1 && !known.repeats {
			return errors.New("is given more than once")
		}
	}
	for i, value := range values {
		if len(value) > maxValue {
			return fmt.Errorf("the value is longer than %d KiB", maxValue>>10)
		}
		var err error
		understood := value
		if isControl {
			understood, err = known.take(p, modifier, value)
		} else {
			err = p.choose(name, value)
		}
		var unknown *unknownError
		if errors.As(err, &unknown) && p.Lenient {
			p.query.Ignored = append(p.query.Ignored, name)
			return nil
		}
		if err != nil {
			return within(place("time", i, len(values)), err)
		}
		p.understand(name, understood)
	}
	return nil
}

// choose takes a parameter that chooses records.
func (p *parser) choose(name, value string) error {
	if !p.filters {
		return &unknownError{name: name, of: p.subject(), known: slices.Sorted(maps.Keys(p.controls))}
	}
	condition, err := p.filter(scope{types: p.query.Types}, name, value)
	if err != nil {
		return err
	}
	p.where = append(p.where, condition)
	return nil
}

// subject is what the query is about, for a person.
func (p *parser) subject() string {
	switch {
	case p.Type != "":
		return p.Type
	case p.Compartment != nil:
		return strings.Join(p.query.Types, " and ")
	case len(p.query.Types) < len(r4.Types):
		return strings.Join(p.query.Types, " and ")
	default:
		return "the whole site"
	}
}

// unknownError says that there is no such parameter. Lenient handling passes over
// that, and over nothing else.
type unknownError struct {
	name, of string
	known    []string
}

func (e *unknownError) Error() string {
	return r4.Quote(e.name) + " is not known for " + e.of + "; known are " + strings.Join(e.known, ", ")
}

// within says where in a query an error is.
func within(place string, err error) error {
	if place == "" {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}

// place names one of several things, none if there is one only.
func place(what string, i, of int) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf("%s %d of %d", what, i+1, of)
}

// takes says which modifiers there are.
func takes(modifiers []string) string {
	if len(modifiers) == 0 {
		return "it takes none"
	}
	return "it takes " + strings.Join(modifiers, ", ")
}
