package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// place is a record's place in an order. Records are told apart by their rids, which rise
// with the time of creation.
type place struct {
	order.Place
	at *state
	// packed is the record's body.
	packed packedBody
}

// ranking is how a statement orders records.
type ranking struct {
	// lateral are the tables that the expressions need beside the record.
	lateral string
	// columns are read with each row: missing, number and text of each part.
	columns []string
	// by are the expressions in their order, with their directions.
	by []directedExpression
	// usesRow tells that expressions need more of a record's row than its rid.
	usesRow bool
}

type directedExpression struct {
	expression string
	descending bool
	// last is its value at the place where the page before ended.
	last any
	// unique tells that no two records of a type share the value.
	unique bool
}

// ranking orders records of a type, whose rows are named r.
func (c *compiler) ranking(o order.Order, typeName, rid string, after *order.Place) ranking {
	var r ranking
	for i, part := range o {
		c.rank(&r, part, typeName, rid, lastRank(after, i))
	}
	r.byRid(o, rid, after)
	return r
}

func lastRank(after *order.Place, part int) order.Rank {
	if after == nil {
		return order.Rank{}
	}
	return after.Ranks[part]
}

func (c *compiler) rank(r *ranking, part store.Sort, typeName, rid string, last order.Rank) {
	switch part.Field {
	case store.SortCreated:
		r.number("("+rid+" >> 22)", part, last)
	case store.SortUpdated:
		r.usesRow = true
		r.number("r.upd", part, last)
	case store.SortID:
		r.usesRow = true
		r.columns = append(r.columns, "FALSE", "0::int8", "r.id::bytea")
		r.by = append(r.by, directedExpression{"r.id", part.Descending, last.Text, true})
	case store.SortText, store.SortPeriod:
		c.rankParam(r, part, typeName, rid, last)
	}
}

// byRid ends an order.
func (r *ranking) byRid(o order.Order, rid string, after *order.Place) {
	var last int64
	if after != nil {
		last = after.Created
	}
	r.by = append(r.by, directedExpression{rid, o.Descends(), last, true})
}

func (r *ranking) number(expression string, part store.Sort, last order.Rank) {
	r.columns = append(r.columns, "FALSE", expression, "''::bytea")
	r.by = append(r.by, directedExpression{expression, part.Descending, last.Number, false})
}

// valuesOf is where the values are that a part of an order goes by, and what stands for one
// that is missing.
func valuesOf(part store.Sort) (table, column, zero string) {
	if part.Field == store.SortText {
		return "ix_str", "val", "''"
	}
	return "ix_date", "lo", "0"
}

// rankColumns are read of a record's value, and at is the value at the last place.
func rankColumns(part store.Sort, missing, value string, last order.Rank) (columns []string, at any) {
	if part.Field == store.SortText {
		return []string{missing, "0::int8", value}, []byte(last.Text)
	}
	return []string{missing, value, "''::bytea"}, last.Number
}

// rankParam orders by the value of a parameter that comes first in the direction.
func (c *compiler) rankParam(r *ranking, part store.Sort, typeName, rid string, last order.Rank) {
	k := c.name("k")
	table, value, zero := valuesOf(part)
	r.lateral += " CROSS JOIN LATERAL (SELECT (SELECT x." + value + " FROM " + table + " x WHERE x.site = $1 AND x.key = " + c.key(typeName, part.Param) +
		" AND x.rid = " + rid + " ORDER BY x." + value + " " + direction(part.Descending) + " LIMIT 1) AS " + value + " OFFSET 0) " + k
	missing, ranked := "("+k+"."+value+" IS NULL)", "COALESCE("+k+"."+value+", "+zero+")"
	columns, at := rankColumns(part, missing, ranked, last)
	r.columns = append(r.columns, columns...)
	r.by = append(r.by, directedExpression{missing, false, last.Missing, false}, directedExpression{ranked, part.Descending, at, false})
}

func direction(descending bool) string {
	if descending {
		return "DESC"
	}
	return "ASC"
}

// orderBy writes the order as far as it has to tell records apart.
func (r *ranking) orderBy() string {
	parts := make([]string, 0, len(r.by))
	for _, d := range r.by {
		parts = append(parts, d.expression+" "+direction(d.descending))
		if d.unique {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// behind writes what is behind the place where the page before ended. Inclusive takes a
// record at the very place too: one of a type that comes later.
func (c *compiler) behind(r *ranking, inclusive bool) string {
	condition := always
	if !inclusive {
		condition = never
	}
	for i := len(r.by) - 1; i >= 0; i-- {
		d := r.by[i]
		value := c.arg(d.last)
		condition = "(" + d.expression + behindOperator(d.descending, false) + value + " OR " + d.expression + " = " + value + " AND " + condition + ")"
	}
	// The same once more for the first of them, so that an index leads there.
	return r.by[0].expression + behindOperator(r.by[0].descending, true) + c.arg(r.by[0].last) + " AND " + condition
}

func behindOperator(descending, inclusive bool) string {
	switch {
	case descending && inclusive:
		return " <= "
	case descending:
		return " < "
	case inclusive:
		return " >= "
	default:
		return " > "
	}
}
