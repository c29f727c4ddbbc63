package search

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// Options say what a query is about and how it is to be read.
type Options struct {
	// Type is the name of the resource type, empty for the whole site.
	Type string
	// SortByDate takes _sort=date for _lastUpdated, as the contract has it (4.1).
	SortByDate bool
	// Lenient passes over unknown parameters (Prefer: handling=lenient).
	Lenient bool
	// Now is the clock for approximate dates.
	Now time.Time
}

// maxErrors bounds how much is said of one query.
const maxErrors = 50

// Parse checks the parameters of a search. The error, if any, is of type Errors.
func Parse(values url.Values, opts Options) (Query, error) {
	return parse(values, opts, searchParameters)
}

// ParseCriteria checks the criteria of a conditional interaction: parameters that
// choose records, at least one. Lenient handling does not apply: criteria that are
// passed over would choose others. R4 http.html#ccreate.
func ParseCriteria(values url.Values, opts Options) (Query, error) {
	opts.Lenient = false
	query, err := parse(values, opts, criteriaParameters)
	if err == nil && len(query.understood) == 0 {
		return Query{}, Errors{{Parameter: "", Problem: "there is none; give at least one of " + list(criteriaParameters)}}
	}
	return query, err
}

// ParseHistory checks the parameters of a history, of which there are few.
func ParseHistory(values url.Values, opts Options) (Query, error) {
	return parse(values, opts, historyParameters)
}

// ParseRead checks the parameters of a read.
func ParseRead(values url.Values, opts Options) (Query, error) {
	return parse(values, opts, readParameters)
}

// parser gathers a Query from its parameters.
type parser struct {
	Options
	query Query
	// totalOnly is the wish of _summary=count.
	totalOnly bool
}

func parse(values url.Values, opts Options, known map[string]parameter) (Query, error) {
	p := parser{Options: opts, query: Query{
		Sort:       Sort{Field: SortCreated, Descending: true},
		Count:      DefaultCount,
		understood: url.Values{},
	}}
	var errs Errors
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := nonEmpty(values[name])
		if len(given) == 0 {
			continue
		}
		if err := p.parameter(known, name, given); err != nil {
			errs = append(errs, Error{Parameter: name, Problem: err.Error()})
		}
		if len(errs) == maxErrors {
			break
		}
	}
	if len(errs) > 0 {
		return Query{}, errs
	}
	if p.totalOnly {
		p.query.Count = 0
	}
	if p.query.Count == 0 {
		p.query.Total = TotalAccurate
	}
	return p.query, nil
}

// parameter takes one parameter with all its values, one for each time it is given.
func (p *parser) parameter(known map[string]parameter, name string, values []string) error {
	base, modifier, modified := strings.Cut(name, ":")
	definition, ok := known[base]
	switch {
	case !ok && p.Lenient:
		p.query.Ignored = append(p.query.Ignored, name)
		return nil
	case !ok:
		return fmt.Errorf("is not known for %s; known are %s", cmp.Or(p.Type, "the whole site"), list(known))
	case modified:
		return fmt.Errorf("the modifier %s is not supported; %s takes none", r4.Quote(modifier), base)
	case len(values) > 1 && !definition.repeats:
		return errors.New("is given more than once")
	}
	for _, value := range values {
		understood, err := definition.parse(p, value)
		if err != nil {
			return err
		}
		p.query.understood.Add(name, understood)
	}
	return nil
}

// nonEmpty drops empty values: they are as good as absent. R4 search.html#errors.
func nonEmpty(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
}

// alternatives splits a value at its commas.
func alternatives(value string) ([]string, error) {
	items := strings.Split(value, ",")
	if slices.Contains(items, "") {
		return nil, fmt.Errorf("%s has an empty item; separate values by single commas", r4.Quote(value))
	}
	return items, nil
}
