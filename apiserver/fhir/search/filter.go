package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// scope is where in a query a parameter stands.
type scope struct {
	// types are those of the records that it chooses.
	types []string
	// links and reversals count the chain links and _has on the way there.
	links, reversals int
}

// reader reads the alternatives of a value as a condition. The items are still escaped.
type reader func(p *parser, d definition, items []string) (store.Condition, error)

const modifierMissing = "missing"

// filter reads a parameter that chooses records: name may be a chain or a _has.
func (p *parser) filter(at scope, name, value string) (store.Condition, error) {
	switch {
	case name == paramHas:
		return p.hasAsValue(at, value)
	case strings.HasPrefix(name, paramHas+":"):
		return p.has(at, name, value)
	case strings.Contains(name, "."):
		return p.chain(at, name, value)
	default:
		return p.plain(at, name, value)
	}
}

// plain reads a parameter of the records themselves.
func (p *parser) plain(at scope, name, value string) (store.Condition, error) {
	base, modifier, modified := strings.Cut(name, ":")
	d, err := p.lookup(at, base)
	if err != nil {
		return nil, err
	}
	read, ok := d.readers[modifier]
	if !ok || modified && modifier == "" {
		known := slices.Sorted(maps.Keys(d.readers))[1:] // the first is none at all
		return nil, fmt.Errorf("the modifier %s is not known for %s, which is a %s; %s", r4.Quote(modifier), base, kindNames[d.kind], takes(known))
	}
	items, err := alternatives(value)
	if err != nil {
		return nil, err
	}
	return read(p, d, items)
}

// lookup finds a parameter of the records chosen.
func (p *parser) lookup(at scope, name string) (definition, error) {
	d, ok := lookup(at.types, name)
	if ok {
		return d, nil
	}
	known := namesOf(at.types)
	of := strings.Join(at.types, " and ")
	if at.links+at.reversals == 0 {
		of = p.subject()
		known = slices.Concat(known, slices.Collect(maps.Keys(p.controls)), []string{paramHas})
		slices.Sort(known)
	}
	return definition{}, &unknownError{name: name, of: of, known: known}
}

// readersOf finds the readers of a parameter, by modifier.
func readersOf(d definition) map[string]reader {
	var readers map[string]reader
	switch d.name {
	case paramID:
		readers = idReaders()
	case paramLastUpdated:
		readers = map[string]reader{"": anyOf((*parser).updated)}
	case "near":
		readers = map[string]reader{"": anyOf((*parser).near)}
	default:
		readers = kindReaders[d.kind](d)
	}
	if d.kind != r4.SearchComposite {
		readers[modifierMissing] = (*parser).missing
	}
	return readers
}

var kindReaders = map[r4.SearchKind]func(definition) map[string]reader{
	r4.SearchToken:     tokenReaders,
	r4.SearchString:    textReaders,
	r4.SearchReference: referenceReaders,
	r4.SearchDate:      dateReaders,
	r4.SearchURI:       uriReaders,
	r4.SearchComposite: compositeReaders,
}

// anyOf makes a reader of what reads one alternative.
func anyOf(read func(p *parser, d definition, item string) (store.Condition, error)) reader {
	return func(p *parser, d definition, items []string) (store.Condition, error) {
		var either store.Any
		for i, item := range items {
			if err := p.compare(item); err != nil {
				return nil, err
			}
			condition, err := read(p, d, item)
			if err != nil {
				return nil, within(place("value", i, len(items)), err)
			}
			either = append(either, condition)
		}
		if len(either) == 1 {
			return either[0], nil
		}
		return either, nil
	}
}

// noneOf makes a reader of what reads the opposite.
func noneOf(read reader) reader {
	return func(p *parser, d definition, items []string) (store.Condition, error) {
		condition, err := read(p, d, items)
		if err != nil {
			return nil, err
		}
		return store.Not{Condition: condition}, nil
	}
}

// compare counts a value that is compared with, and bounds its length.
func (p *parser) compare(item string) error {
	if len(item) > maxItem {
		return fmt.Errorf("a value of %d bytes is too long; the most is %d", len(item), maxItem)
	}
	return p.spend(1)
}

// spend counts values that are compared with.
func (p *parser) spend(n int) error {
	if p.conditions += n; p.conditions > maxConditions {
		return fmt.Errorf("the query compares with more than %d values; ask for less at once", maxConditions)
	}
	return nil
}

// missing reads the modifier :missing. R4 search.html#modifiers.
func (p *parser) missing(d definition, items []string) (store.Condition, error) {
	if err := p.spend(1); err != nil {
		return nil, err
	}
	truth, ok := truths[strings.Join(items, ",")]
	if !ok {
		return nil, fmt.Errorf("%s is neither true nor false, as :missing takes it", r4.Quote(strings.Join(items, ",")))
	}
	if d.name == paramID || d.name == paramLastUpdated { // all records have them
		if truth {
			return store.Any{}, nil
		}
		return store.All{}, nil
	}
	present := store.Present{Param: d.name}
	if truth {
		return store.Not{Condition: present}, nil
	}
	return present, nil
}

var truths = map[string]bool{"true": true, "false": false}
