package search

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// uriReaders returns the readers of URI parameters, or those of canonicalReaders if the values are
// canonical URLs. URIs are compared exactly. R4 search.html#uri.
func uriReaders(d definition) map[string]reader {
	if d.hasAny("canonical") {
		return canonicalReaders()
	}
	return map[string]reader{
		"":      anyOf((*parser).exactText),
		"above": anyOf((*parser).uriAbove),
		"below": anyOf((*parser).uriBelow),
	}
}

// uriBelow parses the modifier :below, which matches the URI and all URIs whose path continues it.
func (p *parser) uriBelow(d definition, item string) (store.Condition, error) {
	uri, err := unescape(item)
	return store.Any{
		store.TextIs{Param: d.name, Match: store.Exactly, Text: uri},
		store.TextIs{Param: d.name, Match: store.StartsExactly, Text: strings.TrimSuffix(uri, "/") + "/"},
	}, err
}

// uriAbove parses the modifier :above, which matches the URI and all its prefixes that end before a /
// of its path.
func (p *parser) uriAbove(d definition, item string) (store.Condition, error) {
	uri, err := unescape(item)
	if err != nil {
		return nil, err
	}
	var above store.Any
	for _, url := range ancestors(uri) {
		above = append(above, store.TextIs{Param: d.name, Match: store.Exactly, Text: url})
	}
	return above, p.addValues(len(above) - 1)
}

// ancestors returns the URI and all its prefixes that end before a / of its path, the longest first.
func ancestors(uri string) []string {
	all := []string{uri}
	path := 0 // the offset after ://
	if at := strings.Index(uri, "://"); at >= 0 {
		path = at + len("://")
	}
	for end := strings.LastIndexByte(uri, '/'); end > path; end = strings.LastIndexByte(uri[:end], '/') {
		all = append(all, uri[:end])
	}
	return all
}
