package search

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// referenceReaders returns the readers of reference parameters. R4 search.html#reference.
func referenceReaders(d definition) map[string]reader {
	readers := map[string]reader{
		"":           anyOf((*parser).reference),
		"identifier": anyOf((*parser).referenceIdentifier),
	}
	for _, target := range d.supportedTargets() {
		readers[target] = referencesTo(target)
	}
	if d.isHierarchy() {
		readers["above"] = anyOf((*parser).above)
		readers["below"] = anyOf((*parser).below)
	}
	return readers
}

// referencesTo returns a reader of references to one type.
func referencesTo(target string) reader {
	return anyOf(func(p *parser, d definition, item string) (store.Condition, error) {
		d.targets = []string{target}
		condition, err := p.reference(d, item)
		if is, ok := condition.(store.RefersTo); err == nil && ok && is.To.Type != target {
			return nil, fmt.Errorf("%s is not a reference to the type %s; write %s/{id}", r4.Quote(item), target, target)
		}
		return condition, err
	})
}

// reference parses an id, a relative reference or an absolute URL.
func (p *parser) reference(d definition, item string) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	if r4.ValidID(text) {
		return store.RefersToID{Param: d.name, Types: d.targets, ID: strings.ToLower(text)}, nil
	}
	to, err := parseReference(text)
	return store.RefersTo{Param: d.name, To: to}, err
}

// referenceIdentifier parses the modifier :identifier, the identifier in a reference.
func (p *parser) referenceIdentifier(d definition, item string) (store.Condition, error) {
	return parseToken(d.name+":identifier", item)
}

// above parses the modifier :above, which matches references to the record and to all records that
// it is part of.
func (p *parser) above(d definition, item string) (store.Condition, error) {
	return p.hierarchy(d, item, true)
}

// below parses the modifier :below, which matches references to the record and to all records that
// are part of it.
func (p *parser) below(d definition, item string) (store.Condition, error) {
	return p.hierarchy(d, item, false)
}

func (p *parser) hierarchy(d definition, item string, above bool) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	if !r4.ValidID(text) {
		to, err := parseReference(text)
		if err == nil && !slices.Contains(d.targets, to.Type) {
			err = fmt.Errorf("%s is not a reference to the type %s; write {type}/{id}", r4.Quote(item), strings.Join(d.targets, " or "))
		}
		return store.RefersAround{Param: d.name, To: to, Above: above}, err
	}
	var either store.Any
	for _, target := range d.targets {
		to := store.Reference{Type: target, ID: strings.ToLower(text)}
		either = append(either, store.RefersAround{Param: d.name, To: to, Above: above})
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, p.addValues(len(either) - 1)
}

// scheme matches the start of an absolute URL.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:.`)

// parseReference parses a reference with a type, or any other absolute URL.
func parseReference(text string) (store.Reference, error) {
	spelling, _, _ := strings.Cut(text, "/") // of the type, in a relative reference
	base, typeName, id, ok := r4.SplitReference(fhirName(spelling) + text[len(spelling):])
	switch {
	case !ok && scheme.MatchString(text):
		return store.Reference{Base: text}, nil
	case !ok:
		return store.Reference{}, fmt.Errorf("%s is not a reference; write an id, {type}/{id} or an absolute URL", r4.Quote(text))
	}
	return store.Reference{Base: base, Type: typeName, ID: strings.ToLower(id)}, nil
}
