package postgres

import (
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// walkByParam reads the records with values of a parameter in the order of the first of
// them, and, where these do not make a page, those that have none.
func (s *source) walkByParam(gates []string) (string, error) {
	key := s.key(s.typeName, s.order[0].Param)
	if s.after != nil && s.after.Ranks[0].Missing {
		return s.without(key, gates)
	}
	values, err := s.along(key, gates)
	if err != nil {
		return "", err
	}
	byValue := s.name("w")
	s.with = append(s.with, byValue+" AS MATERIALIZED "+values)
	short := "(SELECT count(*) FROM " + byValue + ") < " + s.limit
	missing, err := s.without(key, append([]string{short}, gates...))
	if err != nil {
		return "", err
	}
	return "(SELECT * FROM " + byValue + ") UNION ALL " + missing, nil
}

// along walks the rows of a table by value and takes each record at the value that comes
// first. An order of more parts takes all records with the last value of the page: the
// other parts decide among them.
func (s *source) along(key string, gates []string) (string, error) {
	first := s.order[0]
	table, value, _ := valuesOf(first)
	last, way := lastRank(s.after, 0), direction(first.Descending)
	columns, at := rankColumns(first, "FALSE", "d."+value, last)
	r := ranking{columns: columns, by: []directedExpression{{"d." + value, first.Descending, at, false}}}
	for i, part := range s.order[1:] {
		s.rank(&r, part, s.typeName, "d.rid", lastRank(s.after, i+1))
	}
	r.byRid(s.order, "d.rid", s.after)
	ofRid, ofRow, err := s.tests("d.rid", -1, nil)
	if err != nil {
		return "", err
	}
	driver := append([]string{"x.site = $1", "x.key = " + key, "(x.facets & " + strconv.FormatInt(endMark(first.Descending), 10) + ") <> 0"}, gates...)
	where := ofRow
	end := " ORDER BY d." + value + " " + way + ", d.rid " + way + " LIMIT " + s.limit
	switch {
	case s.after != nil && len(s.order) == 1:
		driver = append(driver, "(x."+value+", x.rid)"+behindOperator(first.Descending, s.inclusive)+"("+s.arg(at)+", "+s.arg(s.after.Created)+")")
	case s.after != nil:
		driver = append(driver, "x."+value+behindOperator(first.Descending, true)+s.arg(at))
		where = append(where, s.behind(&r, s.inclusive))
	}
	if len(s.order) > 1 {
		end = " ORDER BY d." + value + " " + way + " FETCH FIRST (" + s.limit + ") ROWS WITH TIES"
	}
	rids := "(SELECT x.rid, x." + value + " FROM " + table + " x WHERE " + strings.Join(driver, " AND ") +
		" ORDER BY x." + value + " " + way + ", x.rid " + way + ") d"
	if len(ofRid) > 0 {
		rids = "(SELECT d.rid, d." + value + " FROM " + rids + " WHERE " + strings.Join(ofRid, " AND ") + ") d"
	}
	if len(s.order) > 1 && len(ofRow) == 0 && !r.usesRow {
		// Only the rows of the page are read.
		names := rankNames(s.order)
		page := "(SELECT * FROM (SELECT d.rid, " + strings.Join(r.columns, ", ") + " FROM " + rids + r.lateral + whereAll(where) + end + ") d(rid, " + names +
			") ORDER BY " + byRanks(s.order) + " LIMIT " + s.limit + ") d"
		if !s.onlyRid {
			page += s.rowOf()
		}
		return "(SELECT " + s.columns("d.rid") + ", " + names + " FROM " + page + ")", nil
	}
	return "(SELECT " + s.columns("d.rid") + ", " + strings.Join(r.columns, ", ") + " FROM " + rids + s.rowOf() + r.lateral + whereAll(where) + end + ")", nil
}

// without walks the records that have no value, in the order of the parts that follow.
func (s *source) without(key string, gates []string) (string, error) {
	ofRid, ofRow, err := s.tests("r.rid", -1, nil)
	if err != nil {
		return "", err
	}
	table, _, _ := valuesOf(s.order[0])
	where := append([]string{
		"r.site = $1", "r.typ = " + s.arg(s.typeName), "NOT r.deleted",
		"NOT " + found(table+" x WHERE x.site = $1 AND x.key = "+key+" AND x.rid = r.rid"),
	}, gates...)
	where = append(append(where, ofRid...), ofRow...)
	behind := s.after
	if behind != nil && !behind.Ranks[0].Missing {
		behind = nil
	}
	r := ranking{columns: []string{"TRUE", "0::int8", "''::bytea"}}
	for i, part := range s.order[1:] {
		s.rank(&r, part, s.typeName, "r.rid", lastRank(behind, i+1))
	}
	r.byRid(s.order, "r.rid", behind)
	if behind != nil {
		where = append(where, s.behind(&r, s.inclusive))
	}
	return "(SELECT " + s.columns("r.rid") + ", " + strings.Join(r.columns, ", ") + " FROM res r" + r.lateral + whereAll(where) +
		" ORDER BY " + r.orderBy() + " LIMIT " + s.limit + ")", nil
}

// rowOf joins the row of the rid of d, named r.
func (s *source) rowOf() string {
	return " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + s.arg(s.typeName) + " AND x.rid = d.rid LIMIT 1) r"
}

// whereAll holds where all conditions do.
func whereAll(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// byParam reports whether the order is by the values of a parameter first.
func byParam(o order.Order) bool {
	return o[0].Field == store.SortText || o[0].Field == store.SortPeriod
}
