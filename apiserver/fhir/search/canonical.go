package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// canonicalReaders read canonical URLs, which are compared as URIs are, and may have a business
// version behind a |. Without a version in the query, the versions of the values do not matter.
// R4 search.html#versions; docs/decisions/0013-canonical-search.md.
func canonicalReaders() map[string]reader {
	return map[string]reader{
		"":      anyOf((*parser).canonicalIs),
		"above": anyOf((*parser).canonicalAbove),
		"below": anyOf((*parser).canonicalBelow),
	}
}

// canonicalURL is a canonical URL with a version, which is empty where there is none.
type canonicalURL struct{ url, version string }

// parseCanonical splits an item at its |. An escaped | belongs to the URL or to the version.
func parseCanonical(item string) (canonicalURL, error) {
	parts, err := splitParts(item)
	switch {
	case err != nil:
		return canonicalURL{}, err
	case len(parts) > 2:
		return canonicalURL{}, fmt.Errorf(`%s has more than one |; write url or url|version, and \| for a | in either`, r4.Quote(item))
	case parts[0] == "" || parts[len(parts)-1] == "":
		return canonicalURL{}, fmt.Errorf("%s is no canonical URL; write url or url|version", r4.Quote(item))
	case len(parts) == 1:
		return canonicalURL{url: parts[0]}, nil
	}
	return canonicalURL{parts[0], parts[1]}, nil
}

// canonicalIs reads a canonical URL in any version, or in the version that it names.
func (p *parser) canonicalIs(d definition, item string) (store.Condition, error) {
	c, err := parseCanonical(item)
	if err != nil {
		return nil, err
	}
	if c.version != "" {
		return store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version}, nil
	}
	return p.alternativesOf(inAnyVersion(d.name, c.url))
}

// canonicalBelow reads a canonical URL as itself and all that its path goes on with, or, with a
// version, as that version and all that it goes on with: 1.2 as 1.2 and 1.2.3, not as 1.20.
func (p *parser) canonicalBelow(d definition, item string) (store.Condition, error) {
	c, err := parseCanonical(item)
	if err != nil {
		return nil, err
	}
	if c.version != "" {
		return p.alternativesOf(store.Any{
			store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version},
			store.TextIs{Param: d.name, Match: store.StartsExactly, Text: c.url + "|" + c.version + "."},
		})
	}
	return p.alternativesOf(append(inAnyVersion(d.name, c.url),
		store.TextIs{Param: d.name, Match: store.StartsExactly, Text: strings.TrimSuffix(c.url, "/") + "/"}))
}

// canonicalAbove reads a canonical URL as itself and all that its path has before, or, with a
// version, as that version and all that it begins with: 1.2.3 as 1.2.3, 1.2 and 1.
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
		return p.alternativesOf(above)
	}
	for end := len(c.version); end > 0; end = strings.LastIndexByte(c.version[:end], '.') {
		above = append(above, store.TextIs{Param: d.name, Match: store.Exactly, Text: c.url + "|" + c.version[:end]})
	}
	return p.alternativesOf(above)
}

// inAnyVersion are the values with a URL, without a version or with any.
func inAnyVersion(param, url string) store.Any {
	return store.Any{
		store.TextIs{Param: param, Match: store.Exactly, Text: url},
		store.TextIs{Param: param, Match: store.StartsExactly, Text: url + "|"},
	}
}

// alternativesOf counts alternatives that were read from one item.
func (p *parser) alternativesOf(either store.Any) (store.Condition, error) {
	return either, p.spend(len(either) - 1)
}
