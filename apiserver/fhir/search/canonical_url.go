package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// canonicalReaders returns the readers of canonical URLs. They are compared as URIs are, and may
// have a business version after a |. Without a version in the query, any version matches. R4
// search.html#versions; docs/decisions/0013-canonical-search.md.
func canonicalReaders() map[string]reader {
	return map[string]reader{
		"":      anyOf((*parser).canonicalIs),
		"above": anyOf((*parser).canonicalAbove),
		"below": anyOf((*parser).canonicalBelow),
	}
}

// canonicalURL is a canonical URL and its version, which may be empty.
type canonicalURL struct{ url, version string }

// parseCanonical splits an item at its |. An escaped | is a part of the URL or of the version.
func parseCanonical(item string) (canonicalURL, error) {
	parts, err := splitParts(item)
	switch {
	case err != nil:
		return canonicalURL{}, err
	case len(parts) > 2:
		return canonicalURL{}, fmt.Errorf(`%s has more than one |; write url or url|version, and \| for a | in either`, r4.Quote(item))
	case parts[0] == "" || parts[len(parts)-1] == "":
		return canonicalURL{}, fmt.Errorf("%s is not a canonical URL; write url or url|version", r4.Quote(item))
	case len(parts) == 1:
		return canonicalURL{url: parts[0]}, nil
	}
	return canonicalURL{parts[0], parts[1]}, nil
}

// canonicalIs matches a canonical URL in any version, or in the given version.
func (p *parser) canonicalIs(d definition, item string) (store.Condition, error) {
	c, err := parseCanonical(item)
	if err != nil {
		return nil, err
	}
	if c.version != "" {
		return store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version}, nil
	}
	return p.countAlternatives(inAnyVersion(d.name, c.url))
}

// canonicalBelow parses the modifier :below. Without a version it matches the URL and all URLs
// whose path continues it. With a version it matches the URL in that version and in the versions
// that continue it: 1.2 matches 1.2 and 1.2.3, not 1.20.
func (p *parser) canonicalBelow(d definition, item string) (store.Condition, error) {
	c, err := parseCanonical(item)
	if err != nil {
		return nil, err
	}
	if c.version != "" {
		return p.countAlternatives(store.Any{
			store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version},
			store.TextIs{Param: d.name, Match: store.StartsExactly, Text: c.url + "|" + c.version + "."},
		})
	}
	return p.countAlternatives(append(inAnyVersion(d.name, c.url),
		store.TextIs{Param: d.name, Match: store.StartsExactly, Text: strings.TrimSuffix(c.url, "/") + "/"}))
}

// canonicalAbove parses the modifier :above. Without a version it matches the URL and its ancestors.
// With a version it matches the URL in that version and in the prefixes of that version: 1.2.3
// matches 1.2.3, 1.2 and 1.
func (p *parser) canonicalAbove(d definition, item string) (store.Condition, error) {
	c, err := parseCanonical(item)
	if err != nil {
		return nil, err
	}
	var above store.Any
	if c.version == "" {
		for _, url := range ancestors(c.url) {
			above = append(above, inAnyVersion(d.name, url)...)
		}
		return p.countAlternatives(above)
	}
	for end := len(c.version); end > 0; end = strings.LastIndexByte(c.version[:end], '.') {
		above = append(above, store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version[:end]})
	}
	return p.countAlternatives(above)
}

// inAnyVersion matches a URL with any version or none.
func inAnyVersion(param, url string) store.Any {
	return store.Any{
		store.TextIs{Param: param, Match: store.Exactly, Text: url},
		store.TextIs{Param: param, Match: store.StartsExactly, Text: url + "|"},
	}
}

// countAlternatives counts the alternatives that one item expands to. The item itself is already
// counted.
func (p *parser) countAlternatives(either store.Any) (store.Condition, error) {
	return either, p.addValues(len(either) - 1)
}
