package search

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// instantRanges turn the range that is searched for into the instants that match: an
// instant is a point, so what overlaps contains.
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

// parseInstants reads a date with an optional prefix as the instants that match.
func (p *parser) parseInstants(item string) ([]store.TimeRange, error) {
	searched, err := parseSearched(item, p.Now, p.Zone)
	if err != nil {
		return nil, err
	}
	return instantRanges[searched.prefix](bound(searched.from), bound(searched.until)), nil
}

// updated reads a condition on meta.lastUpdated.
func (p *parser) updated(_ definition, item string) (store.Condition, error) {
	ranges, err := p.parseInstants(item)
	if err != nil {
		return nil, err
	}
	return updatedIn(ranges), nil
}

// updatedIn is the condition that a record was updated in one of the ranges.
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

// bound makes a time fit for a range, in which the zero time is infinite.
func bound(t time.Time) time.Time {
	t = t.UTC()
	if t.IsZero() {
		return t.Add(1)
	}
	return t
}
