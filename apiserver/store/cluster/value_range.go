package cluster

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// valueRange is a set of ranges of one value, which each record has at most once. An index scan of
// these ranges finds all matches of a filter, in the order of the value.
type valueRange struct {
	field store.SortField // SortPeriod or SortUpdated
	param string
	// within are the ranges, in ascending order and without overlaps.
	within []store.Bounds
	// length is the number of records in the ranges.
	length int
}

// rangeFor returns the value range of a filter whose value is that of a sort key. It returns nil if
// there is none.
func (f filter) rangeFor(part store.Sort) *valueRange {
	i := slices.IndexFunc(f.ranges, func(s valueRange) bool { return s.field == part.Field && s.param == part.Param })
	if i < 0 {
		return nil
	}
	return &f.ranges[i]
}

func (t *typeIndex) singlePeriodIn(condition store.SinglePeriodIn) filter {
	f := valueFilter(condition.Param, condition.Matches)
	s := valueRange{field: store.SortPeriod, param: condition.Param}
	exact := true
	for _, area := range condition.Areas {
		s.within = append(s.within, area.From)
		exact = exact && area.Until == store.Unbounded
	}
	return t.withRange(f, s, exact)
}

func (t *typeIndex) updatedIn(condition store.UpdatedIn) filter {
	updated := store.TimeRange(condition)
	f := filter{matches: func(e *indexedRecord) bool { return updated.Contains(e.obj.Spec.Updated.Time) }}
	within := store.Unbounded
	if !updated.From.IsZero() {
		within.Least = updated.From.UnixMilli()
	}
	if !updated.Until.IsZero() {
		within.Most = updated.Until.Add(-1).UnixMilli()
	}
	return t.withRange(f, valueRange{field: store.SortUpdated, within: []store.Bounds{within}}, false)
}

// withRange sets the candidates to the records in a value range. exact reports whether all of them
// match.
func (t *typeIndex) withRange(f filter, s valueRange, exact bool) filter {
	if s.field == store.SortUpdated {
		s.length = countRanges(t.updated, s.within, updatedPivot)
	} else if values := t.postings.periods[s.param]; values != nil {
		s.length = countRanges(values, s.within, periodPivot)
	}
	f.ranges, f.maxCandidates = []valueRange{s}, s.length
	f.candidates = func() []*indexedRecord {
		return slices.AppendSeq(make([]*indexedRecord, 0, s.length), t.scanValueRange(&s, store.Sort{Field: s.field, Param: s.param}, nil))
	}
	if f.recheck = f.matches; exact {
		f.recheck = nil
	}
	return f
}

// scanValueRange scans the records of a value range in the order of the value, starting after a
// place.
func (t *typeIndex) scanValueRange(s *valueRange, part store.Sort, after *order.Place) iter.Seq[*indexedRecord] {
	if s.field == store.SortUpdated {
		return scanRanges(t.updated, s.within, part.Descending, asPivot(after), updatedPivot)
	}
	return func(yield func(*indexedRecord) bool) {
		values := t.postings.periods[s.param]
		if values == nil {
			return
		}
		for at := range scanRanges(values, s.within, part.Descending, asPeriodPivot(after), periodPivot) {
			if !yield(at.e) {
				return
			}
		}
	}
}

// updatedPivot and periodPivot return pivots for the trees. Depending on end, a pivot sorts before
// or after all items with the same value.
func updatedPivot(millis int64, end *indexedRecord) *indexedRecord {
	return &indexedRecord{updated: millis, created: end.created}
}

func periodPivot(micros int64, end *indexedRecord) periodPosting { return periodPosting{micros, end} }

// beforeAll and afterAll are the ends for updatedPivot and periodPivot. A pivot with beforeAll
// sorts before all items with the same value, one with afterAll after them.
var (
	beforeAll = &indexedRecord{created: math.MinInt64}
	afterAll  = &indexedRecord{created: math.MaxInt64}
)

// countRanges returns the number of items whose values are within one of the bounds. at returns a
// pivot for a value.
func countRanges[T any](tree *btree.BTreeG[T], within []store.Bounds, at func(value int64, end *indexedRecord) T) int {
	before := func(pivot T) int {
		return sort.Search(tree.Len(), func(i int) bool {
			item, _ := tree.GetAt(i)
			return !tree.Less(item, pivot)
		})
	}
	n := 0
	for _, b := range within {
		n += max(0, before(at(b.Most, afterAll))-before(at(b.Least, beforeAll)))
	}
	return n
}

// scanRanges is like scanTree, but only for the items whose values are within one of the bounds. at
// returns a pivot for a value.
func scanRanges[T comparable](tree *btree.BTreeG[T], within []store.Bounds, descending bool, after T, at func(value int64, end *indexedRecord) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		comesBefore := func(a, b T) bool {
			if descending {
				a, b = b, a
			}
			return tree.Less(a, b)
		}
		for i := range within {
			b := within[i]
			if descending {
				b = within[len(within)-1-i]
			}
			first, last := at(b.Least, beforeAll), at(b.Most, afterAll)
			if descending {
				first, last = last, first
			}
			if after != none && comesBefore(first, after) {
				first = after
			}
			for item := range scanTree(tree, descending, first) {
				if comesBefore(last, item) {
					break
				}
				if !yield(item) {
					return
				}
			}
		}
	}
}
