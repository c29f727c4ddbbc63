package search

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// verdict says whether a condition holds.
type verdict int

const (
	no verdict = iota
	unknown
	yes
)

// HoldsFor reports whether a resource that is only about to be stored would meet the
// query by its own values. Conditions on what storing gives it (its id, its time) and
// on other records are not known to hold, nor to fail.
func (q Query) HoldsFor(entries []store.Entry) bool {
	return q.Where != nil && judge(q.Where, entries, q.bases) == yes
}

func judge(c store.Condition, entries []store.Entry, bases []string) verdict {
	switch c := c.(type) {
	case store.All:
		found := yes
		for _, each := range c {
			found = min(found, judge(each, entries, bases))
		}
		return found
	case store.Any:
		found := no
		for _, each := range c {
			found = max(found, judge(each, entries, bases))
		}
		return found
	case store.Not:
		return yes - judge(c.Condition, entries, bases)
	}
	matches, known := matcherOf(c, bases)
	if !known {
		return unknown
	}
	if slices.ContainsFunc(entries, matches) {
		return yes
	}
	return no
}

// matcherOf makes a condition on a resource's own values one on its entries.
func matcherOf(c store.Condition, bases []string) (func(store.Entry) bool, bool) {
	switch c := c.(type) {
	case store.Present:
		return func(e store.Entry) bool { return e.Param == c.Param }, true
	case store.TokenIs:
		return matcher(c.Param, c.Matches), true
	case store.PairIs:
		return matcher(c.Param, c.Matches), true
	case store.TextIs:
		return matcher(c.Param, c.Matches), true
	case store.PeriodIs:
		return matcher(c.Param, c.Matches), true
	case store.SinglePeriodIn:
		return matcher(c.Param, c.Matches), true
	case store.Near:
		return matcher(c.Param, c.Matches), true
	case store.RefersTo:
		return matcher(c.Param, func(r store.Reference) bool { return c.Matches(r, bases) }), true
	case store.RefersToID:
		return matcher(c.Param, func(r store.Reference) bool { return c.Matches(r, bases) }), true
	default: // what the engine knows, and what other records decide
		return nil, false
	}
}

func matcher[V store.Value](param string, matches func(V) bool) func(store.Entry) bool {
	return func(e store.Entry) bool {
		value, ok := e.Value.(V)
		return ok && e.Param == param && matches(value)
	}
}
