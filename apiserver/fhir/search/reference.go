package search

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// referenceReaders read references. R4 search.html#reference.
func referenceReaders(d definition) map[string]reader {
	readers := map[string]reader{
		"":           anyOf((*parser).reference),
		"identifier": anyOf((*parser).referenceIdentifier),
	}
	for _, target := range d.keptTargets() {
		readers[target] = referencesTo(target)
	}
	if d.isHierarchy() {
		readers["above"] = anyOf((*parser).above)
		readers["below"] = anyOf((*parser).below)
	}
	return readers
}

// referencesTo makes a reader of references to one type.
func referencesTo(target string) reader {
	return anyOf(func(p *parser, d definition, item string) (store.Condition, error) {
		d.targets = []string{target}
		condition, err := p.reference(d, item)
		if is, ok := condition.(store.RefersTo); err == nil && ok && is.To.Type != target {
			return nil, fmt.Errorf("%s is no reference to a %s", r4.Quote(item), target)
		}
		return condition, err
	})
}

// reference reads a bare id, a relative reference or an absolute one.
func (p *parser) reference(d definition, item string) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	if r4.ValidID(text) {
		return store.RefersToID{Param: d.name, Types: d.targets, ID: strings.ToLower(text)}, nil
	}
	to, err := p.parseReference(text)
	return store.RefersTo{Param: d.name, To: to}, err
}

// referenceIdentifier reads an identifier that a reference has beside, or instead of,
// an address.
func (p *parser) referenceIdentifier(d definition, item string) (store.Condition, error) {
	return parseToken(d.name+":identifier", item)
}

// above reads a record of a hierarchy, as itself and all that it is a part of.
func (p *parser) above(d definition, item string) (store.Condition, error) {
	return p.around(d, item, true)
}

// below reads a record of a hierarchy, as itself and all that is a part of it.
func (p *parser) below(d definition, item string) (store.Condition, error) {
	return p.around(d, item, false)
}

func (p *parser) around(d definition, item string, above bool) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	if !r4.ValidID(text) {
		to, err := p.parseReference(text)
		if err == nil && !slices.Contains(d.targets, to.Type) {
			err = fmt.Errorf("%s is no reference to a %s", r4.Quote(item), strings.Join(d.targets, " or "))
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
	return either, p.spend(len(either) - 1)
}

// scheme is how absolute URLs begin.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:.`)

// parseReference reads a reference with a type, or any other URL.
func (p *parser) parseReference(text string) (store.Reference, error) {
	base, typeName, id, ok := r4.SplitReference(p.inNames(text))
	switch {
	case !ok && scheme.MatchString(text):
		return store.Reference{Base: text}, nil
	case !ok:
		return store.Reference{}, fmt.Errorf("%s is no reference; write an id, {type}/{id} or an absolute URL", r4.Quote(text))
	}
	return store.Reference{Base: base, Type: typeName, ID: strings.ToLower(id)}, nil
}

// inNames writes FHIR's name of a type for the contract's segment, in references to
// records of this site.
func (p *parser) inNames(reference string) string {
	relative := reference
	for _, base := range p.Bases {
		if rest, ok := strings.CutPrefix(reference, base+"/"); ok {
			relative = rest
		}
	}
	segment, rest, _ := strings.Cut(relative, "/")
	if kept, ok := r4.TypeOf(segment); ok {
		return reference[:len(reference)-len(relative)] + kept.Name + "/" + rest
	}
	return reference
}
