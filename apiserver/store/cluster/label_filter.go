package cluster

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// testsLabels reports whether a condition tests only the names of labels, as most privacy rules do.
func testsLabels(condition store.Condition) bool {
	switch condition := condition.(type) {
	case store.HasLabel:
		return true
	case store.Not:
		return testsLabels(condition.Condition)
	case store.All:
		return !slices.ContainsFunc(condition, func(part store.Condition) bool { return !testsLabels(part) })
	case store.Any:
		return !slices.ContainsFunc(condition, func(part store.Condition) bool { return !testsLabels(part) })
	default:
		return false
	}
}

// labelFilter returns the filter of a condition for which testsLabels is true. Unlike compile, it
// allocates nothing for each part. Most records have the labels of the record before, so it keeps
// the last result.
func labelFilter(condition store.Condition) filter {
	var last []string
	var known, met bool
	return filter{matches: func(e *indexedRecord) bool {
		if !known || !slices.Equal(last, e.labels.Names) {
			last, known, met = e.labels.Names, true, meets(condition, e.labels)
		}
		return met
	}}
}

// meets evaluates a condition for which testsLabels is true.
func meets(condition store.Condition, labels store.Labels) bool {
	switch condition := condition.(type) {
	case store.HasLabel:
		return labels.Has(string(condition))
	case store.Not:
		return !meets(condition.Condition, labels)
	case store.Any:
		return slices.ContainsFunc(condition, func(part store.Condition) bool { return meets(part, labels) })
	case store.All:
		return !slices.ContainsFunc(condition, func(part store.Condition) bool { return !meets(part, labels) })
	default:
		return false
	}
}
