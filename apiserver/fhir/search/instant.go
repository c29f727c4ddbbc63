package search

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// instantRanges has, by prefix, the function that converts the searched range to the ranges of
// instants that match. R4 search.html#prefix.
var instantRanges = map[string]func(from, until time.Time) []store.TimeRange{
	"eq": func(from, until time.Time) []store.TimeRange { return []store.TimeRange{{From: from, Until: until}} },
	"ne": func(from, until time.Time) []store.TimeRange { return []store.TimeRange{{Until: from}, {From: until}} },
	"gt": func(_, until time.Time) []store.TimeRange { return []store.TimeRange{{From: until}} },
	"sa": func(_, until time.Time) []store.TimeRange { return []store.TimeRange{{From: until}} },
	"ge": func(from, _ time.Time) []store.TimeRange { return []store.TimeRange{{From: from}} },
	"lt": func(from, _ time.Time) []store.TimeRange { return []store.TimeRange{{Until: from}} },
	"eb": func(from, _ time.Time) []store.TimeRange { return []store.TimeRange{{Until: from}} },
	"le": func(_, until time.Time) []store.TimeRange { return []store.TimeRange{{Until: until}} },
}

// instants returns the ranges of instants that match: two for ne, otherwise one.
func (d prefixedDate) instants() []store.TimeRange {
	return instantRanges[d.prefix](bound(d.from), bound(d.until))
}

// parseInstants parses a date with an optional prefix into the ranges of instants that match.
func (p *parser) parseInstants(item string) ([]store.TimeRange, error) {
	searched, err := parsePrefixedDate(item, p.Now, p.Zone)
	if err != nil {
		return nil, err
	}
	return searched.instants(), nil
}

func (p *parser) updated(_ definition, item string) (store.Condition, error) {
	ranges, err := p.parseInstants(item)
	if err != nil {
		return nil, err
	}
	return updatedIn(ranges), nil
}

// updatedIn returns the condition that the last update was in one of the ranges.
func updatedIn(ranges []store.TimeRange) store.Condition {
	if len(ranges) == 1 {
		return store.UpdatedIn(ranges[0])
	}
	either := store.Any{}
	for _, r := range ranges {
		either = append(either, store.UpdatedIn(r))
	}
	return either
}

// bound returns t in UTC as an end of a store.TimeRange. It adds a nanosecond to the zero time,
// because a TimeRange has no bound where an end is zero.
func bound(t time.Time) time.Time {
	t = t.UTC()
	if t.IsZero() {
		return t.Add(1)
	}
	return t
}
