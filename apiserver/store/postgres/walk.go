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
	if s.ordering() >= 0 { // without a value, no record is met
		return s.along(key, gates)
	}
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
// first. Where the values are bounded, it walks the ranges that they are in. An order of more
// parts takes all records with the last value of the page: the other parts decide among them.
func (s *source) along(key string, gates []string) (string, error) {
	first := s.order[0]
	_, value, _ := valuesOf(first)
	last, way := lastRank(s.after, 0), direction(first.Descending)
	columns, at := rankColumns(first, "FALSE", "d."+value, last)
	r := ranking{columns: columns, by: []directedExpression{{"d." + value, first.Descending, at, false}}}
	for i, part := range s.order[1:] {
		s.rank(&r, part, s.typeName, "d.rid", lastRank(s.after, i+1))
	}
	r.byRid(s.order, "d.rid", s.after)
	met := s.ordering()
	ofRid, ofRow, err := s.tests("d.rid", met, nil)
	if err != nil {
		return "", err
	}
	where := ofRow
	end := " ORDER BY d." + value + " " + way + ", d.rid " + way + " LIMIT " + s.limit
	if len(s.order) > 1 {
		end = " ORDER BY d." + value + " " + way + " FETCH FIRST (" + s.limit + ") ROWS WITH TIES"
		if s.after != nil {
			where = append(where, s.behind(&r, s.inclusive))
		}
	}
	rids := s.valuesInOrder(key, gates, met) + " d"
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

// valuesInOrder reads the rows of a table that an order by value goes by, behind the page
// before. Bounded, if not -1, is the part of the query that says in which areas they are.
func (s *source) valuesInOrder(key string, gates []string, bounded int) string {
	first := s.order[0]
	table, value, _ := valuesOf(first)
	way := direction(first.Descending)
	bits := strconv.FormatInt(endMark(first.Descending), 10)
	if s.facets != 0 {
		bits = s.arg(endMark(first.Descending) | s.facets)
	}
	where := append([]string{"x.site = $1", "x.key = " + key, "(x.facets & " + bits + ") = " + bits}, gates...)
	start := "(SELECT x.rid, x." + value + " FROM " + table + " x WHERE " + strings.Join(where, " AND ")
	end := " ORDER BY x." + value + " " + way + ", x.rid " + way + ")"
	if bounded < 0 {
		return start + s.behindValue("x."+value) + end
	}
	var ranges []string
	for _, area := range s.parts[bounded].condition.(store.SinglePeriodIn).Areas {
		if in := s.areaBehind(area); in != "" {
			ranges = append(ranges, start+in+end)
		}
	}
	switch len(ranges) {
	case 0:
		return start + " AND " + never + end
	case 1:
		return ranges[0]
	default:
		return "(SELECT * FROM (" + strings.Join(ranges, " UNION ALL ") + ") x" + end
	}
}

// behindValue is what comes behind the page before in an order by value.
func (s *source) behindValue(value string) string {
	if s.after == nil {
		return ""
	}
	first := s.order[0]
	_, at := rankColumns(first, "", "", s.after.Ranks[0])
	if len(s.order) > 1 { // the other parts decide among those with the same value
		return " AND " + value + behindOperator(first.Descending, true) + s.arg(at)
	}
	return " AND (" + value + ", x.rid)" + behindOperator(first.Descending, s.inclusive) + "(" + s.arg(at) + ", " + s.arg(s.after.Created) + ")"
}

// areaBehind is what of an area comes behind the page before; it is empty where nothing does.
// An index is entered by one bound. So only an area in which the page ended is bounded by that
// place, and by nothing else on that side.
func (s *source) areaBehind(area store.PeriodArea) string {
	behind := ""
	if s.after != nil {
		last, descending := s.after.Ranks[0].Number, s.order[0].Descending
		switch {
		case last < area.From.Least && descending, last > area.From.Most && !descending:
			return ""
		case last <= area.From.Most && descending:
			area.From.Most, behind = store.TheEnd, s.behindValue("x.lo")
		case last >= area.From.Least && !descending:
			area.From.Least, behind = store.TheBeginning, s.behindValue("x.lo")
		}
	}
	return behind + " AND " + period(s.statement, area, true)
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
