// Package order defines the order of the results of a search: the values by which records are
// compared, and the position at which a page ends. Both engines use it. How they find records in an
// order is up to them.
package order

import (
	"cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Order is the order of the results of a query, the most significant key first. It has at least one
// key.
type Order []store.Sort

// Of returns the order of a query. Without Query.Sort it is by creation, oldest first.
func Of(query store.Query) Order {
	if len(query.Sort) == 0 {
		return Order{{Field: store.SortCreated}}
	}
	return query.Sort
}

// ByCreation reports whether creation is the only key of the order, in either direction.
func (o Order) ByCreation() bool { return len(o) == 1 && o[0].Field == store.SortCreated }

// Descends reports whether records that are equal in all keys are ordered descending. Their
// direction is that of the last key.
func (o Order) Descends() bool { return o[len(o)-1].Descending }

// Rank is the value by which one key of an order compares a record. Depending on the key, the value is
// Number or Text. The other field is zero.
type Rank struct {
	// Missing is true if the record has no value. Such records come last in both directions.
	Missing bool
	Number  int64
	Text    string
}

// Compare compares two ranks in ascending order, as cmp.Compare does. Neither may be Missing.
func (r Rank) Compare(other Rank) int {
	if r.Number != other.Number {
		return cmp.Compare(r.Number, other.Number)
	}
	return cmp.Compare(r.Text, other.Text)
}

// Place is the place of a record in an order.
type Place struct {
	// Ranks has one rank for each key of the order.
	Ranks []Rank
	// Created, Type and ID order records that have equal ranks. Created grows with the time of
	// creation. The unit of Created depends on the engine.
	Created  int64
	Type, ID string
}

// Compare returns a negative number if a comes before b in the order, a positive one if a comes
// after b, and 0 if a and b are the same place.
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
	c := cmp.Compare(a.Created, b.Created)
	if c == 0 {
		c = cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	}
	return Directed(c, o.Descends())
}

// Directed returns the result of an ascending comparison, negated if descending is true.
func Directed(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}
