package cluster

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/tidwall/btree"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// candidates yields entries, each once, among which are all that a filter holds for;
// check tells which.
func (t *typeIndex) candidates(f filter) (entries iter.Seq[*entry], check func(*entry) bool) {
	if !t.few(f) {
		return t.created.Scan, f.holds
	}
	return slices.Values(f.list()), f.checked()
}

// few reports whether a filter gathers so few that going through them beats going
// through all.
func (t *typeIndex) few(f filter) bool { return f.gather != nil && f.atMost <= t.created.Len()/2 }

// list is what a filter gathers, each once, in the order of creation.
func (f filter) list() []*entry {
	list := f.gather()
	if f.ordered {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	return slices.Compact(list)
}

// checked is what decides on what the filter gathers.
func (f filter) checked() func(*entry) bool {
	if f.check == nil {
		return everything.holds
	}
	return f.check
}

// run is a way through entries in the order of a query.
type run struct {
	entries iter.Seq[*entry]
	check   func(*entry) bool
	// length is the number of matches on all pages where that is known, else -1.
	length int64
}

// inOrder is a run from behind a place, if the entries are kept in the order.
func (t *typeIndex) inOrder(o order.Order, f filter, after *order.Place) (run, bool) {
	r := run{check: f.holds, length: -1}
	if f.everything {
		r.length = int64(t.created.Len())
	}
	s := f.spanOf(o[0])
	switch {
	case s != nil && (!t.few(f) || f.atMost == s.length):
		if r.entries = t.inOrderOf(o, s, after); f.check == nil {
			r.check, r.length = everything.holds, int64(s.length)
		}
	case t.few(f) && o.ByCreation():
		list := f.list()
		if r.check = f.checked(); f.check == nil {
			r.length = int64(len(list))
		}
		r.entries = along(list, o[0].Descending, asEntry(after))
	case t.few(f):
		return r, false
	default:
		r.entries = t.inOrderOf(o, nil, after)
	}
	return r, true
}

// inOrderOf goes through all entries in an order, or through those of a span in the order of
// the first part.
func (t *typeIndex) inOrderOf(o order.Order, s *span, after *order.Place) iter.Seq[*entry] {
	if len(o) == 1 {
		return t.by(o[0], s, after)
	}
	return t.grouped(o, s, after)
}

// by goes through all entries, or those of a span, in an order of one part.
func (t *typeIndex) by(part store.Sort, s *span, after *order.Place) iter.Seq[*entry] {
	if s != nil {
		return t.inSpan(s, part, after)
	}
	switch part.Field {
	case store.SortText, store.SortPeriod:
		return t.byParam(part, after)
	case store.SortUpdated:
		return walk(t.updated, part.Descending, asEntry(after))
	case store.SortID:
		return walk(t.id, part.Descending, asEntry(after))
	default:
		return walk(t.created, part.Descending, asEntry(after))
	}
}

// grouped goes through all entries, or those of a span, in an order of several parts: by the
// first part, and those with the same rank in that, which are few, are put in order by the
// others.
func (t *typeIndex) grouped(o order.Order, s *span, after *order.Place) iter.Seq[*entry] {
	from := after
	if after != nil {
		from = &order.Place{Ranks: after.Ranks[:1], Created: math.MinInt64, ID: after.ID}
		if o[0].Descending {
			from.Created = math.MaxInt64
		}
	}
	return func(yield func(*entry) bool) {
		var group []ranked
		flush := func() bool {
			slices.SortFunc(group, func(a, b ranked) int { return o.Compare(&a.Place, &b.Place) })
			for _, at := range group {
				if (after == nil || o.Compare(after, &at.Place) < 0) && !yield(at.entry) {
					return false
				}
			}
			group = group[:0]
			return true
		}
		for e := range t.by(o[0], s, from) {
			at := rank(o, e, nil)
			if len(group) > 0 && at.Ranks[0] != group[0].Ranks[0] && !flush() {
				return
			}
			group = append(group, at)
		}
		flush()
	}
}

// asEntry is an entry at the place, for the trees to compare with; nil is nil.
func asEntry(at *order.Place) *entry {
	if at == nil {
		return nil
	}
	return &entry{id: at.ID, created: at.Created, updated: at.Ranks[0].Number}
}

// along goes through a list in the order of creation.
func along(list []*entry, descending bool, at *entry) iter.Seq[*entry] {
	from, until := 0, len(list)
	if at != nil {
		from = place(list, at)
		if descending {
			from, until = 0, from
		} else if from < len(list) && !byCreated(at, list[from]) {
			from++
		}
	}
	rest := list[from:until]
	if !descending {
		return slices.Values(rest)
	}
	return func(yield func(*entry) bool) {
		for _, e := range slices.Backward(rest) {
			if !yield(e) {
				return
			}
		}
	}
}

// walk goes through a tree behind an item; the zero item is before all.
func walk[T comparable](tree *btree.BTreeG[T], descending bool, after T) iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		step := func(item T) bool {
			if after != none && !tree.Less(after, item) && !tree.Less(item, after) {
				return true
			}
			return yield(item)
		}
		switch {
		case after == none && descending:
			tree.Reverse(step)
		case after == none:
			tree.Scan(step)
		case descending:
			tree.Descend(after, step)
		default:
			tree.Ascend(after, step)
		}
	}
}

// byParam goes through the entries by their values of a parameter, and then through
// those that have none.
func (t *typeIndex) byParam(part store.Sort, after *order.Place) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if after == nil || !after.Ranks[0].Missing {
			if !t.withValue(part, after, yield) {
				return
			}
			after = nil
		}
		for e := range walk(t.created, part.Descending, asEntry(after)) {
			if e.rank(part).Missing && !yield(e) {
				return
			}
		}
	}
}

// withValue yields each entry at the value of it that comes first; it returns false
// when yield does.
func (t *typeIndex) withValue(part store.Sort, after *order.Place, yield func(*entry) bool) bool {
	var text textPosting
	period := periodAfter(after)
	if after != nil {
		text = textPosting{after.Ranks[0].Text, asEntry(after)}
	}
	if part.Field == store.SortText {
		return firstOf(t.postings.texts[part.Param], part, text, yield, func(at textPosting) (*entry, order.Rank) {
			return at.e, order.Rank{Text: at.text}
		})
	}
	return firstOf(t.postings.periods[part.Param], part, period, yield, func(at periodPosting) (*entry, order.Rank) {
		return at.e, order.Rank{Number: at.from}
	})
}

// periodAfter is a posting at the place; the zero posting where that is nil.
func periodAfter(at *order.Place) periodPosting {
	if at == nil {
		return periodPosting{}
	}
	return periodPosting{at.Ranks[0].Number, asEntry(at)}
}

// firstOf walks values behind one of them, and yields each entry at that which ranks it.
func firstOf[T comparable](values *btree.BTreeG[T], part store.Sort, after T, yield func(*entry) bool, of func(T) (*entry, order.Rank)) bool {
	if values == nil {
		return true
	}
	for value := range walk(values, part.Descending, after) {
		if e, at := of(value); e.rank(part) == at && !yield(e) {
			return false
		}
	}
	return true
}
