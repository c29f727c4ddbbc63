package search

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// uriReaders read URIs, which are compared exactly. R4 search.html#uri.
func uriReaders(d definition) map[string]reader {
	if d.hasAny("canonical") {
		return canonicalReaders()
	}
	return map[string]reader{
		"":      anyOf((*parser).exactly),
		"above": anyOf((*parser).uriAbove),
		"below": anyOf((*parser).uriBelow),
	}
}

// uriBelow reads a URI as itself and all that its path goes on with.
func (p *parser) uriBelow(d definition, item string) (store.Condition, error) {
	uri, err := unescape(item)
	return store.Any{
		store.TextIs{Param: d.name, Match: store.Exactly, Text: uri},
		store.TextIs{Param: d.name, Match: store.StartsExactly, Text: strings.TrimSuffix(uri, "/") + "/"},
	}, err
}

// uriAbove reads a URI as itself and all that its path has before.
func (p *parser) uriAbove(d definition, item string) (store.Condition, error) {
	uri, err := unescape(item)
	if err != nil {
		return nil, err
	}
	var above store.Any
	for _, url := range ancestors(uri) {
		above = append(above, store.TextIs{Param: d.name, Match: store.Exactly, Text: url})
	}
	return above, p.spend(len(above) - 1)
}

// ancestors are a URI and all that its path has before, the longest first.
func ancestors(uri string) []string {
	all := []string{uri}
	path := 0 // where it begins, behind the authority
	if at := strings.Index(uri, "://"); at >= 0 {
		path = at + len("://")
	}
	for end := strings.LastIndexByte(uri, '/'); end > path; end = strings.LastIndexByte(uri[:end], '/') {
		all = append(all, uri[:end])
	}
	return all
}
