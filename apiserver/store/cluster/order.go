package cluster

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// order is the order of a query's results.
type order []store.Sort

func orderOf(query store.Query) order {
	if len(query.Sort) == 0 {
		return order{{Field: store.SortCreated}}
	}
	return query.Sort
}

// rank is what one part of an order compares of an entry.
type rank struct {
	// Missing ranks are behind all others, in both directions.
	Missing bool   `json:"m,omitempty"`
	Number  int64  `json:"n,omitempty"`
	Text    string `json:"t,omitempty"`
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.Number, other.Number), cmp.Compare(r.Text, other.Text))
}

// ranked is an entry's place in an order.
type ranked struct {
	Ranks []rank `json:"r"`
	ID    string `json:"i"`
	Type  string `json:"y"`
	entry *entry
}

// rank finds the place of an entry. Its ranks are in the memory given, if that is enough.
func (o order) rank(e *entry, memory []rank) ranked {
	at := ranked{Ranks: memory[:0], ID: e.id, Type: e.obj.Spec.Type, entry: e}
	for _, part := range o {
		at.Ranks = append(at.Ranks, e.rankOf(part))
	}
	return at
}

func (e *entry) rankOf(part store.Sort) rank {
	switch part.Field {
	case store.SortCreated:
		return rank{Number: e.created}
	case store.SortUpdated:
		return rank{Number: e.updated}
	case store.SortID:
		return rank{Text: e.id}
	default:
		return e.rank(part)
	}
}

// rank finds the value that comes first in a direction.
func (e *entry) rank(part store.Sort) rank {
	first := rank{Missing: true}
	for i := range e.entries {
		if e.entries[i].Param != part.Param {
			continue
		}
		var r rank
		switch v := e.entries[i].Value.(type) {
		case store.Text:
			r.Text = v.Folded
		case store.Period:
			r.Number = v.From
		default:
			continue
		}
		if first.Missing || directed(r.compare(first), part.Descending) < 0 {
			first = r
		}
	}
	return first
}

func (o order) compare(a, b ranked) int {
	for i, part := range o {
		x, y := a.Ranks[i], b.Ranks[i]
		switch {
		case x.Missing && y.Missing:
			continue
		case x.Missing:
			return 1
		case y.Missing:
			return -1
		}
		if c := x.compare(y); c != 0 {
			return directed(c, part.Descending)
		}
	}
	return directed(cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Type, b.Type)), o.descends())
}

// descends is the direction of the ids that make an order total: that of its last part.
func (o order) descends() bool { return o[len(o)-1].Descending }

func directed(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}

// position is the last place of a page, and the order that it is a place in.
type position struct {
	Order order  `json:"o"`
	Last  ranked `json:"l"`
}

func (o order) position(last ranked) (store.Position, error) {
	return json.Marshal(position{o, last})
}

// parse reads a position back; nil is before all places.
func (o order) parse(from store.Position) (*ranked, error) {
	if from == nil {
		return nil, nil
	}
	var at position
	if err := json.Unmarshal(from, &at); err != nil || !slices.Equal(at.Order, o) || len(at.Last.Ranks) != len(o) {
		return nil, store.ErrBadPosition
	}
	return &at.Last, nil
}

// firsts keeps those of many places that come first.
type firsts struct {
	order order
	n     int
	kept  []ranked
	full  bool
}

// add takes a place in, whose ranks the caller uses again. Sorting twice as many as
// wanted, now and then, costs less than keeping them in order.
func (f *firsts) add(at ranked) {
	if f.full && f.order.compare(at, f.kept[f.n-1]) > 0 {
		return
	}
	at.Ranks = slices.Clone(at.Ranks)
	f.kept = append(f.kept, at)
	if len(f.kept) >= 2*f.n {
		f.cut()
	}
}

func (f *firsts) cut() {
	slices.SortFunc(f.kept, f.order.compare)
	if len(f.kept) > f.n {
		f.kept = f.kept[:f.n]
	}
	f.full = len(f.kept) == f.n
}
