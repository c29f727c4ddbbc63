// Package order is the order that the results of a search come in: what is compared of a
// record, and where a page ended. The engines share it; how they find records in an order
// is theirs.
package order

import (
	"cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Order is that of a query's results, its most important part first.
type Order []store.Sort

// Of is the order of a query; without any it is that of creation.
func Of(query store.Query) Order {
	if len(query.Sort) == 0 {
		return Order{{Field: store.SortCreated}}
	}
	return query.Sort
}

// ByCreation reports whether it is the order of creation alone.
func (o Order) ByCreation() bool { return len(o) == 1 && o[0].Field == store.SortCreated }

// Descends is the direction in which records are told apart that are equal in all parts:
// that of the last one.
func (o Order) Descends() bool { return o[len(o)-1].Descending }

// Rank is what one part of an order compares of a record.
type Rank struct {
	// Missing ranks are behind all others, in both directions.
	Missing bool
	Number  int64
	Text    string
}

// Compare compares two ranks that are not missing, ascending.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(cmp.Compare(r.Number, other.Number), cmp.Compare(r.Text, other.Text))
}

// Place is a record's place in an order.
type Place struct {
	Ranks []Rank
	// Created, Type and ID tell records of the same ranks apart. Created rises with the
	// time of creation; how finely is the engine's to say.
	Created  int64
	Type, ID string
}

// Compare tells which of two places comes first.
func (o Order) Compare(a, b *Place) int {
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
		if c := x.Compare(y); c != 0 {
			return Directed(c, part.Descending)
		}
	}
	c := cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	return Directed(c, o.Descends())
}

// Directed turns the result of a comparison round where the order descends.
func Directed(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}
