package sqlplan

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// ranking is the ORDER BY of a statement, with the joins and columns that it needs.
type ranking struct {
	// lateral are the joins that the expressions need in addition to the record.
	lateral string
	// columns are the columns to read for each sort key: whether the value is missing, number and
	// text.
	columns []string
	// by are the expressions, from the first sort key to the last.
	by []directedExpression
	// usesRow reports whether an expression needs another column of the record's row than rid.
	usesRow bool
}

type directedExpression struct {
	expression string
	descending bool
	// last is the value of the expression for the last hit of the previous page.
	last any
	// unique reports whether no two records of a type have the same value.
	unique bool
}

// ranking returns the ranking of records of a type whose rows are named r. after is the place of
// the last hit on the previous page, or nil.
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

// valuesOf returns the table and the column with the values of a sort key, and the SQL of the value
// that replaces a missing one.
func (c *compiler) valuesOf(part store.Sort) (table, column, zero string) {
	switch {
	case part.Field != store.SortText:
	case c.earlier.WideTexts:
		return "ix_str", "val", "''"
	default:
		return "ix_text", "val", "''"
	}
	return "ix_date", "lo", "0"
}

// rankColumns returns the columns to read for a value, and the value of the last hit on the
// previous page.
func rankColumns(part store.Sort, missing, value string, last order.Rank) (columns []string, at any) {
	if part.Field == store.SortText {
		return []string{missing, "0::int8", value}, []byte(last.Text)
	}
	return []string{missing, value, "''::bytea"}, last.Number
}

// rankParam adds a parameter as a sort key. Of the values of a record, the one that sorts first in
// the direction of the key counts.
func (c *compiler) rankParam(r *ranking, part store.Sort, typeName, rid string, last order.Rank) {
	k := c.name("k")
	table, value, zero := c.valuesOf(part)
	if part.Field == store.SortText && !c.earlier.WideTexts {
		r.usesRow = true
		r.lateral += " CROSS JOIN LATERAL (SELECT " + c.endText(typeName, part) + " AS val OFFSET 0) " + k
	} else {
		r.lateral += c.endValue(part, typeName, rid, table, value, k)
	}
	missing, ranked := "("+k+"."+value+" IS NULL)", "COALESCE("+k+"."+value+", "+zero+")"
	columns, at := rankColumns(part, missing, ranked, last)
	r.columns = append(r.columns, columns...)
	r.by = append(r.by, directedExpression{missing, false, last.Missing, false}, directedExpression{ranked, part.Descending, at, false})
}

// endValue returns the join, named k, of the value in an index table by which a record is sorted.
func (c *compiler) endValue(part store.Sort, typeName, rid, table, value, k string) string {
	return " CROSS JOIN LATERAL (SELECT (SELECT x." + value + " FROM " + table + " x WHERE x.site = $1 AND x.key = " + c.key(typeName, part.Param) +
		" AND x.rid = " + rid + " ORDER BY x." + value + " " + direction(part.Descending) + " LIMIT 1) AS " + value + " OFFSET 0) " + k
}

func direction(descending bool) string {
	if descending {
		return "DESC"
	}
	return "ASC"
}

// orderBy returns the expressions up to the first unique one.
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

// afterPlace returns the condition that a record comes after the last hit of the previous page. If
// inclusive is true, the condition also holds for a record at the same place, because its type
// comes after that of the hit.
func (c *compiler) afterPlace(r *ranking, inclusive bool) string {
	condition := always
	if !inclusive {
		condition = never
	}
	for i := len(r.by) - 1; i >= 0; i-- {
		d := r.by[i]
		value := c.Arg(d.last)
		condition = "(" + d.expression + afterOperator(d.descending, false) + value + " OR " + d.expression + " = " + value + " AND " + condition + ")"
	}
	// The bound on the first expression is redundant, but lets Postgres use an index.
	return r.by[0].expression + afterOperator(r.by[0].descending, true) + c.Arg(r.by[0].last) + " AND " + condition
}

func afterOperator(descending, inclusive bool) string {
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
