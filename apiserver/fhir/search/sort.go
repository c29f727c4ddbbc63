package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxSortKeys is the maximum number of sort keys of a search. A search with more is rejected.
const maxSortKeys = 10

// sort parses the sort keys, most significant first. R4 search.html#sort.
func (p *parser) sort(_, value string) (string, error) {
	keys := strings.Split(value, ",")
	if len(keys) > maxSortKeys {
		return "", fmt.Errorf("there are %d sort keys; give at most %d", len(keys), maxSortKeys)
	}
	p.query.Sort = nil
	for i, key := range keys {
		name, descending := strings.CutPrefix(key, "-")
		by, ok := p.sortKey(name)
		if !ok {
			err := fmt.Errorf("%s is not a sort key of %s; give one of %s, with a leading - for descending order",
				r4.Quote(key), p.subject(), strings.Join(p.sortKeys(), ", "))
			return "", within(position("key", i, len(keys)), err)
		}
		// A repeated key has no effect, so it is dropped.
		again := func(s store.Sort) bool { return s.Field == by.Field && s.Param == by.Param }
		if !slices.ContainsFunc(p.query.Sort, again) {
			by.Descending = descending
			p.query.Sort = append(p.query.Sort, by)
		}
	}
	return value, nil
}

// sortKey returns the order of a sort key and reports whether it is supported.
func (p *parser) sortKey(name string) (store.Sort, bool) {
	d, ok := commonDefinition(p.query.Types, name)
	switch {
	case name == paramID:
		return store.Sort{Field: store.SortID}, true
	case name == paramLastUpdated, name == "date" && !ok && p.SortByDate:
		return store.Sort{Field: store.SortUpdated}, true
	}
	if d.kind == r4.SearchDate {
		return store.Sort{Field: store.SortPeriod, Param: name}, ok
	}
	return store.Sort{Field: store.SortText, Param: name}, ok && d.kind == r4.SearchString
}

func (p *parser) sortKeys() []string {
	return slices.DeleteFunc(namesOf(p.query.Types), func(name string) bool {
		_, ok := p.sortKey(name)
		return !ok
	})
}
