package search

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// prefixAreas convert the searched range [a, b) to areas by prefix. A period [l, h) matches if it
// is in one of them. R4 search.html#prefix, search.html#date.
//
// Indexes have microseconds: a finer stored value is indexed as the microsecond that contains it.
// If a or b is finer, each bound is rounded so that no match is missed. The condition may then also
// match a value in the same microsecond that should not match.
var prefixAreas = map[string]func(dateRange) []store.PeriodArea{
	"eq": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{inside(r)} },
	"ne": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r), endsAfter(r)} },
	"gt": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{endsAfter(r)} },
	"lt": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r)} },
	"ge": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{endsAfter(r), inside(r)} },
	"le": func(r dateRange) []store.PeriodArea { return []store.PeriodArea{beginsBefore(r), inside(r)} },
	"sa": startsAfter,
	"eb": endsBefore,
	"ap": nil, // parsePrefixedDate turns it into eq of a wider range
}

func atLeast(t int64) store.Bounds { return store.Bounds{Least: t, Most: store.TheEnd} }
func atMost(t int64) store.Bounds  { return store.Bounds{Least: store.TheBeginning, Most: t} }

// inside returns the area a ≤ l and h ≤ b.
func inside(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: atLeast(floor(r.from)), Until: atMost(ceil(r.until))}
}

// beginsBefore returns the area l < a.
func beginsBefore(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: atMost(ceil(r.from) - 1), Until: store.Unbounded}
}

// endsAfter returns the area h > b.
func endsAfter(r dateRange) store.PeriodArea {
	return store.PeriodArea{From: store.Unbounded, Until: atLeast(floor(r.until) + 1)}
}

// startsAfter returns the areas l ≥ b.
func startsAfter(r dateRange) []store.PeriodArea {
	areas := []store.PeriodArea{{From: atLeast(ceil(r.until)), Until: store.Unbounded}}
	return append(areas, dividedMicrosecond(r.until)...)
}

// endsBefore returns the areas h ≤ a.
func endsBefore(r dateRange) []store.PeriodArea {
	areas := []store.PeriodArea{{From: store.Unbounded, Until: atMost(floor(r.from))}}
	return append(areas, dividedMicrosecond(r.from)...)
}

func dateReaders(definition) map[string]reader {
	return map[string]reader{"": anyOf((*parser).period)}
}

// period parses a date into a condition on periods.
func (p *parser) period(d definition, item string) (store.Condition, error) {
	zone := p.Zone
	if !strings.Contains(item, "T") {
		// Dates in records have no zone and are indexed as UTC, so searched dates are UTC too.
		zone = nil
	}
	searched, err := parsePrefixedDate(item, p.Now, zone)
	if err != nil {
		return nil, err
	}
	var either store.Any
	for _, area := range prefixAreas[searched.prefix](searched.dateRange) {
		either = append(either, store.PeriodIs{Param: d.name, From: area.From, Until: area.Until})
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, p.addValues(len(either) - 1)
}
