package search

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// truth is a value of three-valued logic.
type truth int

const (
	isFalse truth = iota
	isUnknown
	isTrue
)

// Matches reports whether a resource that is not stored yet would match Where by its own values.
// Conditions on values that the engine assigns (id, last update) and on other records are unknown. If
// the result depends on such a condition, or if Where is nil, Matches returns false.
func (q Query) Matches(values []store.IndexValue) bool {
	return q.Where != nil && Matches(q.Where, values, q.bases)
}

// Matches reports whether a resource meets a condition by its own values. It returns false if these
// values do not suffice to decide. bases are the addresses of the site.
func Matches(condition store.Condition, values []store.IndexValue, bases []string) bool {
	return evaluate(condition, values, bases) == isTrue
}

func evaluate(c store.Condition, values []store.IndexValue, bases []string) truth {
	switch c := c.(type) {
	case store.All:
		found := isTrue
		for _, each := range c {
			found = min(found, evaluate(each, values, bases))
		}
		return found
	case store.Any:
		found := isFalse
		for _, each := range c {
			found = max(found, evaluate(each, values, bases))
		}
		return found
	case store.Not:
		return isTrue - evaluate(c.Condition, values, bases)
	}
	matches, known := valuePredicate(c, bases)
	if !known {
		return isUnknown
	}
	if slices.ContainsFunc(values, matches) {
		return isTrue
	}
	return isFalse
}

// valuePredicate converts a condition on a resource's own values to a predicate on its index
// values. It reports false for other conditions.
func valuePredicate(c store.Condition, bases []string) (func(store.IndexValue) bool, bool) {
	switch c := c.(type) {
	case store.Present:
		return func(e store.IndexValue) bool { return e.Param == c.Param }, true
	case store.TokenIs:
		return typedPredicate(c.Param, c.Matches), true
	case store.PairIs:
		return typedPredicate(c.Param, c.Matches), true
	case store.TextIs:
		return typedPredicate(c.Param, c.Matches), true
	case store.PeriodIs:
		return typedPredicate(c.Param, c.Matches), true
	case store.SinglePeriodIn:
		return typedPredicate(c.Param, c.Matches), true
	case store.Near:
		return typedPredicate(c.Param, c.Matches), true
	case store.RefersTo:
		return typedPredicate(c.Param, func(r store.Reference) bool { return c.Matches(r, bases) }), true
	case store.RefersToID:
		return typedPredicate(c.Param, func(r store.Reference) bool { return c.Matches(r, bases) }), true
	default: // conditions on values that the engine assigns, and on other records
		return nil, false
	}
}

func typedPredicate[V store.Value](param string, matches func(V) bool) func(store.IndexValue) bool {
	return func(e store.IndexValue) bool {
		value, ok := e.Value.(V)
		return ok && e.Param == param && matches(value)
	}
}
