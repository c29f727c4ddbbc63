package cluster

import (
	"iter"
	"slices"
	"time"

	"github.com/tidwall/btree"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// candidates yields entries among which are all that a filter holds for, each once.
func (t *typeIndex) candidates(f filter) iter.Seq[*entry] {
	if f.gather == nil || f.atMost >= t.created.Len() {
		return t.created.Scan
	}
	list := f.gather()
	if !f.ordered {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b *entry) int {
			switch {
			case byCreated(a, b):
				return -1
			case byCreated(b, a):
				return 1
			default:
				return 0
			}
		})
		list = slices.Compact(list)
	}
	return slices.Values(list)
}

// inOrder yields the entries behind a place in an order of one part, as far as they
// are kept in it; ok tells whether they are.
func (t *typeIndex) inOrder(o order, f filter, after *ranked) (entries iter.Seq[*entry], ok bool) {
	if len(o) != 1 {
		return nil, false
	}
	few := f.gather != nil && f.atMost < t.created.Len()/2
	switch part := o[0]; {
	case few && f.ordered && part.Field == store.SortCreated:
		return along(f.gather(), part.Descending, after), true
	case few:
		return nil, false
	case part.Field == store.SortParam:
		return t.byParam(part, after), true
	case part.Field == store.SortUpdated:
		return walk(t.updated, part.Descending, after.asEntry()), true
	case part.Field == store.SortID:
		return walk(t.id, part.Descending, after.asEntry()), true
	default:
		return walk(t.created, part.Descending, after.asEntry()), true
	}
}

// asEntry is an entry at the place, for the trees to compare with; nil is nil.
func (at *ranked) asEntry() *entry {
	if at == nil {
		return nil
	}
	obj := recordsv1.Record{}
	obj.Spec.Created.Time = time.UnixMilli(at.Ranks[0].Number)
	obj.Spec.Updated = obj.Spec.Created
	return &entry{obj: &obj, id: at.ID}
}

// along goes through a list in the order of creation.
func along(list []*entry, descending bool, after *ranked) iter.Seq[*entry] {
	from, until := 0, len(list)
	if at := after.asEntry(); at != nil {
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
func (t *typeIndex) byParam(part store.Sort, after *ranked) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if after == nil || !after.Ranks[0].Missing {
			if !t.withValue(part, after, yield) {
				return
			}
			after = nil
		}
		for e := range walk(t.id, part.Descending, after.asEntry()) {
			if e.rank(part).Missing && !yield(e) {
				return
			}
		}
	}
}

// withValue yields each entry at the value of it that comes first; it returns false
// when yield does.
func (t *typeIndex) withValue(part store.Sort, after *ranked, yield func(*entry) bool) bool {
	var from rank
	if after != nil {
		from = after.Ranks[0]
	}
	if texts := t.postings.texts[part.Param]; texts != nil {
		var start textPosting
		if after != nil {
			start = textPosting{from.Text, after.asEntry()}
		}
		for at := range walk(texts, part.Descending, start) {
			if at.e.rank(part).Text == at.text && !yield(at.e) {
				return false
			}
		}
	}
	if periods := t.postings.periods[part.Param]; periods != nil {
		var start periodPosting
		if after != nil {
			start = periodPosting{from.Number, after.asEntry()}
		}
		for at := range walk(periods, part.Descending, start) {
			if at.e.rank(part).Number == at.from && !yield(at.e) {
				return false
			}
		}
	}
	return true
}
