package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// tokenReaders returns the readers of token parameters. Subsumption (:above, :below) is not
// supported, because it needs hierarchies of codes. R4 search.html#token.
func tokenReaders(d definition) map[string]reader {
	is, in := anyOf((*parser).token), anyOf((*parser).inValueSet)
	readers := map[string]reader{"": is, "not": noneOf(is), "in": in, "not-in": noneOf(in)}
	if d.hasAny("CodeableConcept", "Coding", "Identifier") {
		readers["text"] = anyOf((*parser).tokenText)
	}
	if d.hasAny("Identifier") {
		readers["of-type"] = anyOf((*parser).ofType)
	}
	return readers
}

// token parses code, system|code, |code or system|.
func (p *parser) token(d definition, item string) (store.Condition, error) {
	condition, err := parseToken(d.name, item)
	if err != nil {
		return nil, err
	}
	if slices.Equal(d.types, []string{"boolean"}) && condition.Code != nil {
		if _, ok := booleans[*condition.Code]; !ok {
			return nil, fmt.Errorf("%s is neither true nor false; give one of the two", r4.Quote(item))
		}
	}
	return condition, nil
}

// parseToken parses a token. A nil System of the condition matches any system, a nil Code any code.
func parseToken(param, item string) (store.TokenIs, error) {
	parts, err := splitParts(item)
	switch {
	case err != nil:
		return store.TokenIs{}, err
	case len(parts) > 2:
		return store.TokenIs{}, fmt.Errorf(`%s has more than one |; write system|code, and \| for a | in either`, r4.Quote(item))
	case strings.Join(parts, "") == "":
		return store.TokenIs{}, fmt.Errorf("%s is not a token; write code, system|code, |code or system|", r4.Quote(item))
	}
	condition := store.TokenIs{Param: param}
	if len(parts) == 2 {
		condition.System = &parts[0]
	}
	if code := fold.Code(parts[len(parts)-1]); code != "" {
		condition.Code = &code
	}
	return condition, nil
}

// splitParts splits an item at each | that no backslash escapes, and unescapes the parts.
func splitParts(item string) ([]string, error) {
	parts := splitUnescaped(item, '|')
	for i, part := range parts {
		text, err := unescape(part)
		if err != nil {
			return nil, err
		}
		parts[i] = text
	}
	return parts, nil
}

// tokenText parses the modifier :text, which matches the start of a text that belongs to a code.
func (p *parser) tokenText(d definition, item string) (store.Condition, error) {
	d.name += ":text"
	return p.text(d, item)
}

// ofType parses the modifier :of-type: system|code|value, the system and code of an identifier's
// type and the value of the identifier. All three are required.
func (p *parser) ofType(d definition, item string) (store.Condition, error) {
	parts, err := splitParts(item)
	if err != nil {
		return nil, err
	}
	if len(parts) != 3 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%s is not an identifier with its type; write system|code|value, where system and code are those of the identifier's type", r4.Quote(item))
	}
	code := fold.Code(parts[1]) + "|" + fold.Code(parts[2])
	return store.TokenIs{Param: d.name + ":of-type", System: &parts[0], Code: &code}, nil
}

// inValueSet parses the modifier :in, a URL of a value set, into a condition that has its codes.
func (p *parser) inValueSet(d definition, item string) (store.Condition, error) {
	url, err := unescape(item)
	if err != nil {
		return nil, err
	}
	codings, ok := r4.Expand(url)
	if !ok {
		return nil, fmt.Errorf("the value set %s is not supported; give one that R4 binds as required and whose codes can be listed, such as http://hl7.org/fhir/ValueSet/administrative-gender", r4.Quote(url))
	}
	if err := p.addValues(len(codings) - 1); err != nil {
		return nil, err
	}
	var either store.Any
	for _, coding := range codings {
		code := fold.Code(coding.Code)
		either = append(either, store.TokenIs{Param: d.name, System: &coding.System, Code: &code})
	}
	return either, nil
}
