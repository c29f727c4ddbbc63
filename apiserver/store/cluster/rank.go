package cluster

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// ranked is a record and its place in an order.
type ranked struct {
	order.Place
	record *indexedRecord
}

// rank returns the place of a record in an order. It stores the ranks in memory if its capacity is
// large enough, so that a caller can avoid allocations.
func rank(o order.Order, e *indexedRecord, memory []order.Rank) ranked {
	at := ranked{order.Place{Ranks: memory[:0], Created: e.created, Type: e.obj.Spec.Type, ID: e.id}, e}
	for _, part := range o {
		at.Ranks = append(at.Ranks, e.rank(part))
	}
	return at
}

func (e *indexedRecord) rank(part store.Sort) order.Rank {
	switch part.Field {
	case store.SortCreated:
		return order.Rank{Number: e.created}
	case store.SortUpdated:
		return order.Rank{Number: e.updated}
	case store.SortID:
		return order.Rank{Text: e.id}
	default:
		return e.rankByParam(part)
	}
}

// rankByParam returns the value of the parameter that sorts first in the direction of the key. The
// rank is Missing if the record has none.
func (e *indexedRecord) rankByParam(part store.Sort) order.Rank {
	first := order.Rank{Missing: true}
	for i := range e.values {
		if e.values[i].Param != part.Param {
			continue
		}
		var r order.Rank
		text, isText := e.values[i].Value.(store.Text)
		period, isPeriod := e.values[i].Value.(store.Period)
		switch {
		case isText && part.Field == store.SortText:
			r.Text = text.Folded
		case isPeriod && part.Field == store.SortPeriod:
			r.Number = period.From
		default:
			continue
		}
		if first.Missing || order.Directed(r.Compare(first), part.Descending) < 0 {
			first = r
		}
	}
	return first
}

// topN keeps the first n of the places that are added to it.
type topN struct {
	order order.Order
	n     int
	kept  []ranked
	full  bool
}

// add adds a place. It copies the ranks, so the caller may reuse their memory. It sorts only when
// 2n places are kept, which is cheaper than keeping them sorted.
func (f *topN) add(at ranked) {
	if f.full && f.order.Compare(&at.Place, &f.kept[f.n-1].Place) > 0 {
		return
	}
	at.Ranks = slices.Clone(at.Ranks)
	f.kept = append(f.kept, at)
	if len(f.kept) >= 2*f.n {
		f.cut()
	}
}

func (f *topN) cut() {
	slices.SortFunc(f.kept, func(a, b ranked) int { return f.order.Compare(&a.Place, &b.Place) })
	if len(f.kept) > f.n {
		f.kept = f.kept[:f.n]
	}
	f.full = len(f.kept) == f.n
}
