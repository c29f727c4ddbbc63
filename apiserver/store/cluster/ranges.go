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

// span is where the entries are that a filter holds for, in an order by a value that each has
// once.
type span struct {
	field store.SortField // SortPeriod or SortUpdated
	param string
	// within are bounds of that value, which do not overlap, in ascending order.
	within []store.Bounds
	// length is the number of entries there.
	length int
}

// spanOf is the span of a filter in the order of a part, or nil.
func (f filter) spanOf(part store.Sort) *span {
	i := slices.IndexFunc(f.spans, func(s span) bool { return s.field == part.Field && s.param == part.Param })
	if i < 0 {
		return nil
	}
	return &f.spans[i]
}

// singlePeriodIn gathers by the beginnings of the areas.
func (t *typeIndex) singlePeriodIn(condition store.SinglePeriodIn) filter {
	f := valueFilter(condition.Param, condition.Matches)
	s := span{field: store.SortPeriod, param: condition.Param}
	exact := true
	for _, area := range condition.Areas {
		s.within = append(s.within, area.From)
		exact = exact && area.Until == store.Unbounded
	}
	return t.spanning(f, s, exact)
}

// updatedIn gathers by the time of the last update.
func (t *typeIndex) updatedIn(condition store.UpdatedIn) filter {
	updated := store.TimeRange(condition)
	f := filter{holds: func(e *entry) bool { return updated.Contains(e.obj.Spec.Updated.Time) }}
	within := store.Unbounded
	if !updated.From.IsZero() {
		within.Least = updated.From.UnixMilli()
	}
	if !updated.Until.IsZero() {
		within.Most = updated.Until.Add(-1).UnixMilli()
	}
	return t.spanning(f, span{field: store.SortUpdated, within: []store.Bounds{within}}, false)
}

// spanning makes a filter gather the entries of a span; exact as in listed.
func (t *typeIndex) spanning(f filter, s span, exact bool) filter {
	if s.field == store.SortUpdated {
		s.length = countBetween(t.updated, s.within, updatedAt)
	} else if values := t.postings.periods[s.param]; values != nil {
		s.length = countBetween(values, s.within, beginningAt)
	}
	f.spans, f.atMost = []span{s}, s.length
	f.gather = func() []*entry {
		return slices.AppendSeq(make([]*entry, 0, s.length), t.inSpan(&s, store.Sort{Field: s.field, Param: s.param}, nil))
	}
	if f.check = f.holds; exact {
		f.check = nil
	}
	return f
}

// inSpan goes through the entries of a span in its order, behind a place.
func (t *typeIndex) inSpan(s *span, part store.Sort, after *order.Place) iter.Seq[*entry] {
	if s.field == store.SortUpdated {
		return walkBetween(t.updated, s.within, part.Descending, asEntry(after), updatedAt)
	}
	return func(yield func(*entry) bool) {
		values := t.postings.periods[s.param]
		if values == nil {
			return
		}
		for at := range walkBetween(values, s.within, part.Descending, periodAfter(after), beginningAt) {
			if !yield(at.e) {
				return
			}
		}
	}
}

// updatedAt and beginningAt are items before all others, or behind all others, with a value.
func updatedAt(millis int64, end *entry) *entry {
	return &entry{updated: millis, created: end.created}
}

func beginningAt(micros int64, end *entry) periodPosting { return periodPosting{micros, end} }

// firstEntry is before all others with the same value, lastEntry behind them.
var (
	firstEntry = &entry{created: math.MinInt64}
	lastEntry  = &entry{created: math.MaxInt64}
)

// countBetween counts the items of a tree whose values are within bounds.
func countBetween[T any](tree *btree.BTreeG[T], within []store.Bounds, at func(value int64, end *entry) T) int {
	before := func(pivot T) int {
		return sort.Search(tree.Len(), func(i int) bool {
			item, _ := tree.GetAt(i)
			return !tree.Less(item, pivot)
		})
	}
	n := 0
	for _, b := range within {
		n += max(0, before(at(b.Most, lastEntry))-before(at(b.Least, firstEntry)))
	}
	return n
}

// walkBetween is walk within bounds of the items' values.
func walkBetween[T comparable](tree *btree.BTreeG[T], within []store.Bounds, descending bool, after T, at func(value int64, end *entry) T) iter.Seq[T] {
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
			first, last := at(b.Least, firstEntry), at(b.Most, lastEntry)
			if descending {
				first, last = last, first
			}
			if after != none && comesBefore(first, after) {
				first = after
			}
			for item := range walk(tree, descending, first) {
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
