package search

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// bounds are what a prefix asks of the beginning and the end of a period.
type bounds struct{ from, until store.Bounds }

// prefixes turn the range [a, b) that is searched for into what a period [l, h) must
// be: within one of the bounds returned. Bounds are inclusive. R4 search.html#prefix,
// search.html#date.
var prefixes = map[string]func(store.Period) []bounds{
	"eq": func(p store.Period) []bounds { return []bounds{{atLeast(p.From), atMost(p.Until)}} },
	"ne": func(p store.Period) []bounds { return []bounds{beginsBefore(p), endsAfter(p)} },
	"gt": func(p store.Period) []bounds { return []bounds{endsAfter(p)} },
	"lt": func(p store.Period) []bounds { return []bounds{beginsBefore(p)} },
	"ge": func(p store.Period) []bounds { return []bounds{endsAfter(p), {atLeast(p.From), atMost(p.Until)}} },
	"le": func(p store.Period) []bounds { return []bounds{beginsBefore(p), {atLeast(p.From), atMost(p.Until)}} },
	"sa": func(p store.Period) []bounds { return []bounds{{atLeast(p.Until), store.Unbounded}} },
	"eb": func(p store.Period) []bounds { return []bounds{{store.Unbounded, atMost(p.From)}} },
	"ap": nil, // eq of a wider range
}

func atLeast(t int64) store.Bounds { return store.Bounds{Least: t, Most: store.TheEnd} }
func atMost(t int64) store.Bounds  { return store.Bounds{Least: store.TheBeginning, Most: t} }

func beginsBefore(p store.Period) bounds { return bounds{atMost(p.From - 1), store.Unbounded} }
func endsAfter(p store.Period) bounds    { return bounds{store.Unbounded, atLeast(p.Until + 1)} }

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
	for _, b := range prefixes[searched.prefix](searched.Period) {
		either = append(either, store.PeriodIs{Param: d.name, From: b.from, Until: b.until})
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, p.spend(len(either) - 1)
}
