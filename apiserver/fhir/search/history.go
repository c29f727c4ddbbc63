package search

import (
	"strings"
)

// since takes an instant, or a date for its beginning. R4 http.html#history.
func (p *parser) since(_, value string) (string, error) {
	value = strings.Replace(value, " ", "+", 1) // a + that was not escaped
	named, err := parseDate(value, p.Zone)
	p.query.Since = bound(named.from)
	return value, err
}

// at takes the period that a date names. R4 http.html#history.
func (p *parser) at(_, value string) (string, error) {
	items, err := alternatives(value)
	if err != nil {
		return "", err
	}
	for i, item := range items {
		ranges, err := p.parseInstants(item)
		if err == nil {
			err = p.compare(item)
		}
		if err != nil {
			return "", within(place("value", i, len(items)), err)
		}
		p.query.At = append(p.query.At, ranges...)
	}
	return value, nil
}
