package cluster

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// ranked is an entry's place in an order.
type ranked struct {
	order.Place
	entry *entry
}

// rank finds the place of an entry. Its ranks are in the memory given, if that is enough.
func rank(o order.Order, e *entry, memory []order.Rank) ranked {
	at := ranked{order.Place{Ranks: memory[:0], Created: e.created, Type: e.obj.Spec.Type, ID: e.id}, e}
	for _, part := range o {
		at.Ranks = append(at.Ranks, e.rank(part))
	}
	return at
}

func (e *entry) rank(part store.Sort) order.Rank {
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

// rankByParam finds the value that comes first in a direction.
func (e *entry) rankByParam(part store.Sort) order.Rank {
	first := order.Rank{Missing: true}
	for i := range e.entries {
		if e.entries[i].Param != part.Param {
			continue
		}
		var r order.Rank
		text, isText := e.entries[i].Value.(store.Text)
		period, isPeriod := e.entries[i].Value.(store.Period)
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

// firsts keeps those of many places that come first.
type firsts struct {
	order order.Order
	n     int
	kept  []ranked
	full  bool
}

// add takes a place in, whose ranks the caller uses again. Sorting twice as many as
// wanted, now and then, costs less than keeping them in order.
func (f *firsts) add(at ranked) {
	if f.full && f.order.Compare(&at.Place, &f.kept[f.n-1].Place) > 0 {
		return
	}
	at.Ranks = slices.Clone(at.Ranks)
	f.kept = append(f.kept, at)
	if len(f.kept) >= 2*f.n {
		f.cut()
	}
}

func (f *firsts) cut() {
	slices.SortFunc(f.kept, func(a, b ranked) int { return f.order.Compare(&a.Place, &b.Place) })
	if len(f.kept) > f.n {
		f.kept = f.kept[:f.n]
	}
	f.full = len(f.kept) == f.n
}
