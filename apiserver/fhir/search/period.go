package search

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// prefixes turn the range [a, b) that is searched for into the areas in one of which a
// period [l, h) must be. R4 search.html#prefix, search.html#date.
//
// Indexes keep microseconds: a stored value that is finer than that is indexed as the whole
// microsecond around it. Where a or b is finer, each bound is therefore rounded such that no
// value is missed. It may then find a value of the same microsecond that does not match.
var prefixes = map[string]func(dateRange) []store.PeriodArea{
	"eq": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{inside(r)} },
	"ne": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r), endsAfter(r)} },
	"gt": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{endsAfter(r)} },
	"lt": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r)} },
	"ge": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{endsAfter(r), inside(r)} },
	"le": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r), inside(r)} },
	"sa": startsAfter,
	"eb": endsBefore,
	"ap": nil, // eq of a wider range
}

func atLeast(t int64) store.Bounds { return store.Bounds{Least: t, Most: store.TheEnd} }
func atMost(t int64) store.Bounds  { return store.Bounds{Least: store.TheBeginning, Most: t} }

// inside is a ≤ l and h ≤ b.
func inside(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: atLeast(floor(r.from)), Until: atMost(ceil(r.until))}
}

// beginsBefore is l < a.
func beginsBefore(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: atMost(ceil(r.from) - 1), Until: store.Unbounded}
}

// endsAfter is h > b.
func endsAfter(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: store.Unbounded, Until: atLeast(floor(r.until) + 1)}
}

// startsAfter is l ≥ b.
func startsAfter(r dateRange) []store.PeriodArea {
	areas := []store.PeriodArea{{From: atLeast(ceil(r.until)), Until: store.Unbounded}}
	return append(areas, microsecondOf(r.until)...)
}

// endsBefore is h ≤ a.
func endsBefore(r dateRange) []store.PeriodArea {
	areas := []store.PeriodArea{{From: store.Unbounded, Until: atMost(floor(r.from))}}
	return append(areas, microsecondOf(r.from)...)
}

func dateReaders(definition) map[string]reader {
	return map[string]reader{"": anyOf((*parser).period)}
}

// period reads a date as a condition on periods.
func (p *parser) period(d definition, item string) (store.Condition, error) {
	zone := p.Zone
	if !strings.Contains(item, "T") {
		// Dates in records have no zone and count as UTC's, so those searched for do.
		zone = nil
	}
	searched, err := parseSearched(item, p.Now, zone)
	if err != nil {
		return nil, err
	}
	var either store.Any
	for _, area := range prefixes[searched.prefix](searched.dateRange) {
		either = append(either, store.PeriodIs{Param: d.name, From: area.From, Until: area.Until})
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, p.spend(len(either) - 1)
}
