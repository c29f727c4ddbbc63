package search

import (
	"strings"
)

// since parses _since: an instant or a date. A date means its first instant. R4 http.html#history.
func (p *parser) since(_, value string) (string, error) {
	value = strings.Replace(value, " ", "+", 1) // an unescaped + arrives as a space
	named, err := parseDate(value, p.Zone)
	p.query.Since = bound(named.from)
	return value, err
}

// at parses _at: dates with optional prefixes. A date means its whole range. R4 http.html#history.
func (p *parser) at(_, value string) (string, error) {
	items, err := splitAlternatives(value)
	if err != nil {
		return "", err
	}
	for i, item := range items {
		ranges, err := p.parseInstants(item)
		if err == nil {
			err = p.countValue(item)
		}
		if err != nil {
			return "", within(position("value", i, len(items)), err)
		}
		p.query.At = append(p.query.At, ranges...)
	}
	return value, nil
}
