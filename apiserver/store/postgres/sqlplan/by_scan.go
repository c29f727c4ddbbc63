package sqlplan

import (
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// scanByParam returns the branch for an order whose first key is a parameter. It reads the records
// that have a value and then, if these do not fill the page, the records without a value.
func (p *planner) scanByParam(guards []string) (string, error) {
	key := ""
	if p.order[0].Field != store.SortText || p.earlier.WideTexts { // texts have several keys
		key = p.key(p.typeName, p.order[0].Param)
	}
	if p.orderPredicate() >= 0 { // a record without a value does not match
		return p.scanByValue(key, guards)
	}
	if p.after != nil && p.after.Ranks[0].Missing {
		return p.scanMissing(key, guards)
	}
	values, err := p.scanByValue(key, guards)
	if err != nil {
		return "", err
	}
	byValue := p.name("w")
	p.with = append(p.with, byValue+" AS MATERIALIZED "+values)
	short := "(SELECT count(*) FROM " + byValue + ") < " + p.limit
	missing, err := p.scanMissing(key, append([]string{short}, guards...))
	if err != nil {
		return "", err
	}
	return "(SELECT * FROM " + byValue + ") UNION ALL " + missing, nil
}

// scanByValue returns SQL that scans an index in the order of its values. Of the values of a
// record, it reads the one that sorts first. If a predicate bounds the values, it scans only the
// ranges of that predicate.
func (p *planner) scanByValue(key string, guards []string) (string, error) {
	first := p.order[0]
	_, value, _ := p.valuesOf(first)
	last, dir := lastRank(p.after, 0), direction(first.Descending)
	columns, at := rankColumns(first, "FALSE", "d."+value, last)
	r := ranking{columns: columns, by: []directedExpression{{"d." + value, first.Descending, at, false}}}
	for i, part := range p.order[1:] {
		p.rank(&r, part, p.typeName, "d.rid", lastRank(p.after, i+1))
	}
	r.byRid(p.order, "d.rid", p.after)
	bounded := p.orderPredicate()
	ofRid, ofRow, err := p.tests("d.rid", bounded, nil)
	if err != nil {
		return "", err
	}
	rids := func(guards []string) string {
		rids := p.valuesInOrder(key, guards, bounded) + " d"
		if len(ofRid) > 0 {
			rids = "(SELECT d.rid, d." + value + " FROM " + rids + " WHERE " + strings.Join(ofRid, " AND ") + ") d"
		}
		return rids
	}
	inOrder := " ORDER BY d." + value + " " + dir + ", d.rid " + dir + " LIMIT " + p.limit
	if len(p.order) == 1 {
		return "(SELECT " + p.columns("d.rid") + ", " + strings.Join(r.columns, ", ") + " FROM " + rids(guards) + p.rowOf() + r.lateral + whereAll(ofRow) + inOrder + ")", nil
	}
	row, lateral, where := "", "", ofRow
	if p.after != nil {
		lateral, where = r.lateral, append(where, p.afterPlace(&r, p.inclusive))
	}
	if len(ofRow) > 0 || p.after != nil && r.usesRow {
		row = p.rowOf()
	}
	matches := func(guards []string) string {
		return "SELECT d.rid, d." + value + " FROM " + rids(guards) + row + lateral + whereAll(where)
	}
	return p.amongTies(matches, guards, inOrder, &r), nil
}

// amongTies returns SQL that reads a page in an order with several keys. It first reads records in
// the order of the first key, up to the limit. Then it reads all further records whose value of the
// first key is that of the last record, because the other keys decide the order among these. If there
// are fewer records than the limit, it reads no further ones. matches returns SQL that selects rid
// and value of the matches in an index range.
func (p *planner) amongTies(matches func(guards []string) string, guards []string, inOrder string, r *ranking) string {
	_, value, _ := p.valuesOf(p.order[0])
	names, top := rankNames(p.order), p.name("top")
	p.with = append(p.with, top+" AS MATERIALIZED ("+matches(guards)+inOrder+")")
	last := "(SELECT " + value + " FROM " + top + " OFFSET " + p.limit + " - 1)" // NULL if there are fewer
	ties := matches(append([]string{"x." + value + " = " + last}, guards...))
	row := ""
	if r.usesRow {
		row = p.rowOf()
	}
	page := "(SELECT d.rid, " + strings.Join(r.columns, ", ") + " FROM (SELECT * FROM " + top + " WHERE " + value + " IS DISTINCT FROM " + last +
		" UNION ALL " + ties + ") d" + row + r.lateral + " ORDER BY " + r.orderBy() + " LIMIT " + p.limit + ") d(rid, " + names + ")"
	if !p.onlyRid {
		page += p.rowOf()
	}
	return "(SELECT " + p.columns("d.rid") + ", " + names + " FROM " + page + ")"
}

// valuesInOrder returns SQL that selects the index rows after the previous page, in the order of
// their values. bounded is the index of the predicate that bounds the values, or -1.
func (p *planner) valuesInOrder(key string, guards []string, bounded int) string {
	first := p.order[0]
	table, value, _ := p.valuesOf(first)
	dir := direction(first.Descending)
	end := " ORDER BY x." + value + " " + dir + ", x.rid " + dir + ")"
	if first.Field == store.SortText && !p.earlier.WideTexts {
		return p.textsInOrder(guards, end)
	}
	bits := strconv.FormatInt(indexrow.EndMark(first.Descending), 10)
	if p.facets.periods != 0 {
		bits = p.Arg(indexrow.EndMark(first.Descending) | p.facets.periods)
	}
	where := append([]string{"x.site = $1", "x.key = " + key, "(x.facets & " + bits + ") = " + bits}, guards...)
	start := "(SELECT x.rid, x." + value + " FROM " + table + " x WHERE " + strings.Join(where, " AND ")
	if bounded < 0 {
		return start + p.afterValue("x."+value) + end
	}
	var ranges []string
	for _, area := range p.predicates[bounded].condition.(store.SinglePeriodIn).Areas {
		if in := p.areaAfter(area); in != "" {
			ranges = append(ranges, start+in+end)
		}
	}
	if len(ranges) == 0 {
		return start + " AND " + never + end
	}
	return merged(ranges, end)
}

// merged returns SQL that reads several index ranges in one order.
func merged(ranges []string, end string) string {
	if len(ranges) == 1 {
		return ranges[0]
	}
	return "(SELECT * FROM (" + strings.Join(ranges, " UNION ALL ") + ") x" + end
}

// textsInOrder is valuesInOrder for ix_text. It reads a range for each key of the parameter.
func (p *planner) textsInOrder(guards []string, end string) string {
	first := p.order[0]
	keys := p.textKeys(p.typeName, first.Param)
	bits := p.Arg(indexrow.TextEndMark(len(keys) > 1, first.Descending) | p.facets.texts)
	where := strings.Join(append([]string{"(x.facets & " + bits + ") = " + bits}, guards...), " AND ") + p.afterValue("x.val")
	ranges := make([]string, len(keys))
	for i, key := range keys {
		ranges[i] = "(SELECT x.rid, x.val FROM ix_text x WHERE x.site = $1 AND x.key = " + p.Arg(key) + " AND " + where + end
	}
	return merged(ranges, end)
}

// afterValue returns the condition that a value comes after the previous page, preceded by AND. It is
// empty for the first page. If the order has several keys, it also holds for the last value of that page.
func (p *planner) afterValue(value string) string {
	if p.after == nil {
		return ""
	}
	first := p.order[0]
	_, at := rankColumns(first, "", "", p.after.Ranks[0])
	if len(p.order) > 1 { // the other keys decide among equal values
		return " AND " + value + afterOperator(first.Descending, true) + p.Arg(at)
	}
	return " AND (" + value + ", x.rid)" + afterOperator(first.Descending, p.inclusive) + "(" + p.Arg(at) + ", " + p.Arg(p.after.Created) + ")"
}

// areaAfter returns the condition of the part of an area that comes after the previous page, or ""
// if no part does. Postgres can start an index scan at one bound only. So if the previous page
// ended in the area, its last value replaces the bound at which the area starts in sort order.
func (p *planner) areaAfter(area store.PeriodArea) string {
	after := ""
	if p.after != nil {
		last, descending := p.after.Ranks[0].Number, p.order[0].Descending
		switch {
		case last < area.From.Least && descending, last > area.From.Most && !descending:
			return ""
		case last <= area.From.Most && descending:
			area.From.Most, after = store.TheEnd, p.afterValue("x.lo")
		case last >= area.From.Least && !descending:
			area.From.Least, after = store.TheBeginning, p.afterValue("x.lo")
		}
	}
	return after + " AND " + period(p.Statement, area, true)
}

// scanMissing returns SQL that scans the records that have no value of the parameter, in the order
// of the other keys.
func (p *planner) scanMissing(key string, guards []string) (string, error) {
	ofRid, ofRow, err := p.tests("r.rid", -1, nil)
	if err != nil {
		return "", err
	}
	where := append([]string{"r.site = $1", "r.typ = " + p.Arg(p.typeName), "NOT r.deleted", "NOT " + p.hasSortValue(key)}, guards...)
	where = append(append(where, ofRid...), ofRow...)
	after := p.after
	if after != nil && !after.Ranks[0].Missing {
		after = nil
	}
	r := ranking{columns: []string{"TRUE", "0::int8", "''::bytea"}}
	for i, part := range p.order[1:] {
		p.rank(&r, part, p.typeName, "r.rid", lastRank(after, i+1))
	}
	r.byRid(p.order, "r.rid", after)
	if after != nil {
		where = append(where, p.afterPlace(&r, p.inclusive))
	}
	return "(SELECT " + p.columns("r.rid") + ", " + strings.Join(r.columns, ", ") + " FROM res r" + r.lateral + whereAll(where) +
		" ORDER BY " + r.orderBy() + " LIMIT " + p.limit + ")", nil
}

// hasSortValue returns the test whether the row r has a value of the first sort key. key is the SQL
// of the hash of its parameter, and is not used for texts in vals.
func (p *planner) hasSortValue(key string) string {
	if p.order[0].Field == store.SortText && !p.earlier.WideTexts {
		return p.hasText(candidateRow(p.typeName, "r"), p.order[0].Param)
	}
	table, _, _ := p.valuesOf(p.order[0])
	return exists(table + " x WHERE x.site = $1 AND x.key = " + key + " AND x.rid = r.rid")
}

// rowOf returns the SQL that joins the row of res, named r, for the rid of d.
func (p *planner) rowOf() string {
	return " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + p.Arg(p.typeName) + " AND x.rid = d.rid LIMIT 1) r"
}

// whereAll returns a WHERE clause that requires all conditions, or "" if there are none.
func whereAll(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// byParam reports whether the first sort key is a parameter.
func byParam(o order.Order) bool {
	return o[0].Field == store.SortText || o[0].Field == store.SortPeriod
}
