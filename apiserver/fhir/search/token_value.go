package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// TokenMatch is one value that a token condition takes: a nil System takes any, an
// empty one none; a nil Code takes any. R4 search.html#token.
type TokenMatch struct {
	System, Code *string
}

// TokenCondition holds for a resource with a value of the parameter that one of
// AnyOf takes.
type TokenCondition struct {
	Param string
	AnyOf []TokenMatch
}

// token makes the parser of a token parameter.
func token(param string) func(*parser, string) (string, error) {
	return func(p *parser, value string) (string, error) {
		condition := TokenCondition{Param: param}
		for _, item := range splitUnescaped(value, ',') {
			match, err := parseToken(item)
			if err != nil {
				return "", err
			}
			condition.AnyOf = append(condition.AnyOf, match)
		}
		p.query.Tokens = append(p.query.Tokens, condition)
		return value, nil
	}
}

// parseToken reads code, system|code, |code or system|.
func parseToken(item string) (TokenMatch, error) {
	parts := splitUnescaped(item, '|')
	for i, part := range parts {
		text, err := unescape(part)
		if err != nil {
			return TokenMatch{}, err
		}
		parts[i] = text
	}
	switch {
	case len(parts) > 2:
		return TokenMatch{}, fmt.Errorf(`%s has more than one |; write system|code, and \| for a | in either`, r4.Quote(item))
	case len(parts) == 1 && parts[0] == "" || len(parts) == 2 && parts[0]+parts[1] == "":
		return TokenMatch{}, fmt.Errorf("%s is no token; write code, system|code, |code or system|", r4.Quote(item))
	case len(parts) == 1:
		return TokenMatch{Code: &parts[0]}, nil
	case parts[1] == "":
		return TokenMatch{System: &parts[0]}, nil
	default:
		return TokenMatch{System: &parts[0], Code: &parts[1]}, nil
	}
}

// splitUnescaped splits a value at a separator that no backslash precedes. R4
// search.html#escaping.
func splitUnescaped(value string, separator byte) []string {
	var parts []string
	start := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case separator:
			parts = append(parts, value[start:i])
			start = i + 1
		}
	}
	return append(parts, value[start:])
}

// unescape takes the backslashes out of \, \$ \| and \\.
func unescape(part string) (string, error) {
	if !strings.Contains(part, `\`) {
		return part, nil
	}
	var text strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '\\' {
			i++
			if i == len(part) || !strings.ContainsRune(`,$|\`, rune(part[i])) {
				return "", fmt.Errorf(`%s has a backslash that escapes nothing; it goes before , $ | and \ only`, r4.Quote(part))
			}
		}
		text.WriteByte(part[i])
	}
	return text.String(), nil
}

// HoldsFor reports whether a resource that is only about to be stored would meet
// the query for its tokens alone. Conditions on what storing gives it (its id, its
// time) never hold.
func (q Query) HoldsFor(tokens []r4.Token) bool {
	if q.IDs != nil || q.Updated != nil {
		return false
	}
	for _, condition := range q.Tokens {
		if !condition.holdsFor(tokens) {
			return false
		}
	}
	return true
}

func (c TokenCondition) holdsFor(tokens []r4.Token) bool {
	for _, token := range tokens {
		for _, match := range c.AnyOf {
			if token.Param == c.Param && (match.System == nil || *match.System == token.System) && (match.Code == nil || *match.Code == token.Code) {
				return true
			}
		}
	}
	return false
}
