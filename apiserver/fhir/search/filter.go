package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// scope is where a search parameter is in the query: at the start, or after chain links and _has.
type scope struct {
	// types are those of the records that the parameter selects.
	types []string
	// links and reversals count the chain links and the _has before the parameter.
	links, reversals int
}

// reader parses the alternatives of a value into a condition. The items are still escaped.
type reader func(p *parser, d definition, items []string) (store.Condition, error)

const modifierMissing = "missing"

// parseFilter parses one value of a search parameter. name may be a chain or a _has.
func (p *parser) parseFilter(at scope, name, value string) (store.Condition, error) {
	switch {
	case name == paramHas:
		return p.hasAsValue(at, value)
	case strings.HasPrefix(name, paramHas+":"):
		return p.has(at, name, value)
	case strings.Contains(name, "."):
		return p.chain(at, name, value)
	default:
		return p.parseSimple(at, name, value)
	}
}

// parseSimple parses a search parameter that is neither a chain nor a _has.
func (p *parser) parseSimple(at scope, name, value string) (store.Condition, error) {
	base, modifier, modified := strings.Cut(name, ":")
	d, err := p.lookup(at, base)
	if err != nil {
		return nil, err
	}
	read, ok := d.readers[fhirName(modifier)]
	if !ok || modified && modifier == "" {
		known := slices.Sorted(maps.Keys(d.readers))[1:] // the first key is "", no modifier
		return nil, fmt.Errorf("the modifier %s is not supported for %s, a %s parameter; %s", r4.Quote(modifier), base, kindNames[d.kind], describeModifiers(known))
	}
	items, err := splitAlternatives(value)
	if err != nil {
		return nil, err
	}
	return read(p, d, items)
}

// lookup returns the definition of a search parameter. Errors: *unknownError.
func (p *parser) lookup(at scope, name string) (definition, error) {
	d, ok := lookup(at.types, name)
	if ok {
		return d, nil
	}
	known := namesOf(at.types)
	of := strings.Join(at.types, " and ")
	if at.links+at.reversals == 0 {
		of = p.subject()
		known = slices.Concat(known, slices.Collect(maps.Keys(p.resultParameters)), []string{paramHas})
		if p.Type != "" { // types refuses _type then
			known = slices.DeleteFunc(known, func(name string) bool { return name == paramType })
		}
		slices.Sort(known)
	}
	return definition{}, &unknownError{name: name, of: of, known: known}
}

// readersOf returns the readers of a search parameter by modifier.
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

// anyOf returns a reader whose condition is met if one of the alternatives is met. read parses one
// alternative.
func anyOf(read func(p *parser, d definition, item string) (store.Condition, error)) reader {
	return func(p *parser, d definition, items []string) (store.Condition, error) {
		var either store.Any
		for i, item := range items {
			if err := p.countValue(item); err != nil {
				return nil, err
			}
			condition, err := read(p, d, item)
			if err != nil {
				return nil, within(position("value", i, len(items)), err)
			}
			either = append(either, condition)
		}
		if len(either) == 1 {
			return either[0], nil
		}
		return either, nil
	}
}

// noneOf returns a reader that negates the condition of read.
func noneOf(read reader) reader {
	return func(p *parser, d definition, items []string) (store.Condition, error) {
		condition, err := read(p, d, items)
		if err != nil {
			return nil, err
		}
		return store.Not{Condition: condition}, nil
	}
}

// countValue counts a value. It returns an error above maxItemSize or maxValues.
func (p *parser) countValue(item string) error {
	if len(item) > maxItemSize {
		return fmt.Errorf("a value has %d bytes; give at most %d in each", len(item), maxItemSize)
	}
	return p.addValues(1)
}

// addValues adds n to the number of values of the query. It returns an error above maxValues.
func (p *parser) addValues(n int) error {
	if p.values += n; p.values > maxValues {
		return fmt.Errorf("the query has more than %d values; give fewer alternatives or parameters", maxValues)
	}
	return nil
}

// missing parses the modifier :missing. R4 search.html#modifiers.
func (p *parser) missing(d definition, items []string) (store.Condition, error) {
	if err := p.addValues(1); err != nil {
		return nil, err
	}
	truth, ok := booleans[strings.Join(items, ",")]
	if !ok {
		return nil, fmt.Errorf("%s is neither true nor false; :missing needs one of the two", r4.Quote(strings.Join(items, ",")))
	}
	if d.name == paramID || d.name == paramLastUpdated { // never missing
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

var booleans = map[string]bool{"true": true, "false": false}
