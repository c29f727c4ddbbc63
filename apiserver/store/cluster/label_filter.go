package cluster

import (
	"slices"
	"strings"

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
	return filter{labels: condition, before: everything.matches, matches: func(e *indexedRecord) bool {
		if !known || !slices.Equal(last, e.labels.Names) {
			last, known, met = e.labels.Names, true, meets(condition, e.labels)
		}
		return met
	}}
}

const (
	// maxHidden is the maximum number of hidden records that are tested to count the visible records.
	// With more hidden records, testing visible records until maxFreeTotal of them match is cheaper.
	maxHidden = maxFreeTotal
	// maxLabelled is the maximum number of different sets of labels for which a condition is evaluated to
	// count records. A site normally has a few. Hundreds of evaluations would cost as much as a page.
	maxLabelled = 100
)

// labelled holds the records of a type that have the same names of labels, at least one.
type labelled struct {
	labels  store.Labels
	records map[*indexedRecord]struct{}
}

// byLabels holds the records of a type that have labels, by the names of the labels (labelsKey).
type byLabels map[string]*labelled

func labelsKey(e *indexedRecord) string { return strings.Join(e.labels.Names, "\n") }

func (b byLabels) add(e *indexedRecord) {
	if len(e.labels.Names) == 0 {
		return
	}
	key := labelsKey(e)
	if b[key] == nil {
		b[key] = &labelled{store.Labels{Names: e.labels.Names}, map[*indexedRecord]struct{}{}}
	}
	b[key].records[e] = struct{}{}
}

func (b byLabels) remove(e *indexedRecord) {
	if len(e.labels.Names) == 0 {
		return
	}
	key := labelsKey(e)
	if delete(b[key].records, e); len(b[key].records) == 0 {
		delete(b, key)
	}
}

// visible returns how many of the n candidates of a filter match, without a test of each candidate. It
// subtracts the candidates that the labels of the filter hide. It returns -1 if the number is unknown,
// or if computing it would cost more than testing all candidates.
func (b byLabels) visible(f filter, n int) int64 {
	if f.recheck == nil && f.candidates != nil || f.everything {
		return int64(n)
	}
	if f.labels == nil || len(b) > maxLabelled || !meets(f.labels, store.Labels{}) {
		return -1
	}
	tested := 0
	for _, l := range b {
		if meets(f.labels, l.labels) {
			continue
		}
		if tested += len(l.records); tested > maxHidden {
			return -1
		}
		for e := range l.records {
			if f.before(e) {
				n--
			}
		}
	}
	return int64(n)
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
