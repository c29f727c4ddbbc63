package postgres

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

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

// byCreation reports whether it is the order that rids have.
func (o order) byCreation() bool { return len(o) == 1 && o[0].Field == store.SortCreated }

// descends is the direction of the ids that make an order total: that of its last part.
func (o order) descends() bool { return o[len(o)-1].Descending }

// rank is what one part of an order compares of a record.
type rank struct {
	// Missing ranks are behind all others, in both directions.
	Missing bool   `json:"m,omitempty"`
	Number  int64  `json:"n,omitempty"`
	Text    []byte `json:"t,omitempty"`
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.Number, other.Number), slices.Compare(r.Text, other.Text))
}

// place is a record's place in an order.
type place struct {
	Ranks []rank `json:"r"`
	ID    string `json:"i"`
	Type  string `json:"y"`
	at    *state
}

func (o order) compare(a, b place) int {
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

func directed(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}

// position is the last place of a page, and the order that it is a place in.
type position struct {
	Order order `json:"o"`
	Last  place `json:"l"`
}

func (o order) position(last place) (store.Position, error) {
	return json.Marshal(position{o, last})
}

// parse reads a position back; nil is before all places.
func (o order) parse(from store.Position) (*place, error) {
	if from == nil {
		return nil, nil
	}
	var at position
	if err := json.Unmarshal(from, &at); err != nil || !slices.Equal(at.Order, o) || len(at.Last.Ranks) != len(o) || !storable(at.Last.ID) {
		return nil, store.ErrBadPosition
	}
	return &at.Last, nil
}

// ranking is how a statement orders rows, named r.
type ranking struct {
	// lateral are the tables that the expressions need beside r.
	lateral string
	// columns are read with each row: missing, number and text of each part.
	columns []string
	// by are the expressions in their order, with their directions.
	by []directedExpression
}

type directedExpression struct {
	expression string
	descending bool
	// last is its value at the place where the page before ended.
	last any
}

func (c *compiler) ranking(o order, typeName string, after *place) ranking {
	var r ranking
	for i, part := range o {
		var last rank
		if after != nil {
			last = after.Ranks[i]
		}
		switch part.Field {
		case store.SortCreated:
			r.number("(r.rid >> 22)", part, last)
		case store.SortUpdated:
			r.number("r.upd", part, last)
		case store.SortID:
			r.columns = append(r.columns, "FALSE", "0::int8", "r.id::bytea")
			r.by = append(r.by, directedExpression{"r.id", part.Descending, string(last.Text)})
		case store.SortParam:
			c.rankParam(&r, part, typeName, last)
		}
	}
	last := ""
	if after != nil {
		last = after.ID
	}
	r.by = append(r.by, directedExpression{"r.id", o.descends(), last})
	return r
}

func (r *ranking) number(expression string, part store.Sort, last rank) {
	r.columns = append(r.columns, "FALSE", expression, "''::bytea")
	r.by = append(r.by, directedExpression{expression, part.Descending, last.Number})
}

// rankParam orders by the value of a parameter that comes first in the direction.
func (c *compiler) rankParam(r *ranking, part store.Sort, typeName string, last rank) {
	k := c.name("k")
	key, direction := c.key(typeName, part.Param), direction(part.Descending)
	r.lateral += " CROSS JOIN LATERAL (SELECT (SELECT x.val FROM ix_str x WHERE x.site = $1 AND x.key = " + key + " AND x.rid = r.rid ORDER BY x.val " + direction +
		" LIMIT 1) AS val, (SELECT x.lo FROM ix_date x WHERE x.site = $1 AND x.key = " + key + " AND x.rid = r.rid ORDER BY x.lo " + direction + " LIMIT 1) AS lo) " + k
	missing := "(" + k + ".val IS NULL AND " + k + ".lo IS NULL)"
	number, text := "COALESCE("+k+".lo, 0)", "COALESCE("+k+".val, '')"
	r.columns = append(r.columns, missing, number, text)
	r.by = append(r.by, directedExpression{missing, false, last.Missing},
		directedExpression{number, part.Descending, last.Number}, directedExpression{text, part.Descending, nonNilBytes(last.Text)})
}

func nonNilBytes(text []byte) []byte {
	if text == nil {
		return []byte{}
	}
	return text
}

func direction(descending bool) string {
	if descending {
		return "DESC"
	}
	return "ASC"
}

// orderBy writes the order; the id comes once.
func (r *ranking) orderBy() string {
	parts := make([]string, 0, len(r.by))
	for _, d := range r.by {
		parts = append(parts, d.expression+" "+direction(d.descending))
	}
	return strings.Join(parts, ", ")
}

// behind writes what is behind the place where the page before ended. Inclusive takes a
// record with the same id too: one of a type that comes later.
func (c *compiler) behind(r *ranking, inclusive bool) string {
	condition := always
	if !inclusive {
		condition = never
	}
	for i := len(r.by) - 1; i >= 0; i-- {
		d := r.by[i]
		operator := " > "
		if d.descending {
			operator = " < "
		}
		value := c.arg(d.last)
		condition = "(" + d.expression + operator + value + " OR " + d.expression + " = " + value + " AND " + condition + ")"
	}
	// The same once more for the first of them, so that an index leads there.
	operator := " >= "
	if r.by[0].descending {
		operator = " <= "
	}
	return r.by[0].expression + operator + c.arg(r.by[0].last) + " AND " + condition
}

// creationBounds are the least and most rid behind, or of the same millisecond as, a place.
func creationBounds(last rank) (least, most int64) {
	return last.Number << ridShift, min(last.Number, math.MaxInt64>>ridShift)<<ridShift | (1<<ridShift - 1)
}
