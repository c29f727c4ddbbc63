package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// paramOrder is an order by one parameter alone: pages of it are walks along the values.
type paramOrder struct {
	store.Sort
	after *place
}

// last is the rank at the end of the page before.
func (o *paramOrder) last() rank {
	if o.after == nil {
		return rank{}
	}
	return o.after.Ranks[0]
}

func (o *paramOrder) lastID() string {
	if o.after == nil {
		return ""
	}
	return o.after.ID
}

// walkByParam reads the records with texts in the order of their first texts, those with
// periods in that of their first beginnings, and, where these do not make a page, those
// that have neither.
func (s *source) walkByParam(gates []string) (string, error) {
	o := s.byParam
	key := s.key(s.typeName, o.Param)
	if o.after != nil && o.last().Missing {
		return s.without(key, gates)
	}
	texts, err := s.along("ix_str", "val", "more", key, gates)
	if err != nil {
		return "", err
	}
	periods, err := s.along("ix_date", "lo", "hi", key, gates)
	if err != nil {
		return "", err
	}
	byText, byPeriod := s.name("w"), s.name("w")
	s.with = append(s.with, byText+" AS MATERIALIZED "+texts, byPeriod+" AS MATERIALIZED "+periods)
	short := "(SELECT count(*) FROM " + byText + ") + (SELECT count(*) FROM " + byPeriod + ") < " + s.limit
	missing, err := s.without(key, append([]string{short}, gates...))
	if err != nil {
		return "", err
	}
	return "(SELECT * FROM " + byText + ") UNION ALL (SELECT * FROM " + byPeriod + ") UNION ALL " + missing, nil
}

// along walks the rows of a table by value, takes each record at its first, and of those
// with the last value of the page all: ids decide among them.
func (s *source) along(table, value, tie, key string, gates []string) (string, error) {
	o := s.byParam
	last, direction := o.last(), direction(o.Descending)
	ranking := ranking{columns: []string{"FALSE", "d.lo", "k.val"}, by: []directedExpression{
		{"FALSE", false, last.Missing}, {"d.lo", o.Descending, last.Number}, {"k.val", o.Descending, nonNilBytes(last.Text)}, {"r.id", o.Descending, o.lastID()},
	}}
	rival := " CROSS JOIN LATERAL (SELECT COALESCE((SELECT x.val FROM ix_str x WHERE x.site = $1 AND x.key = " + key + " AND x.rid = d.rid ORDER BY x.val " +
		direction + " LIMIT 1), '') AS val) k"
	var where []string
	if table == "ix_str" {
		ranking.columns = []string{"FALSE", "0::int8", "d.val"}
		ranking.by = []directedExpression{
			{"FALSE", false, last.Missing}, {"0::int8", o.Descending, last.Number}, {"d.val", o.Descending, nonNilBytes(last.Text)}, {"r.id", o.Descending, o.lastID()},
		}
		rival = ""
		where = append(where, "NOT "+found("ix_date x WHERE x.site = $1 AND x.key = "+key+" AND x.rid = d.rid"))
	}
	driver := []string{
		"x.site = $1", "x.key = " + key,
		"(x." + value + ", x." + tie + ") = (SELECT y." + value + ", y." + tie + " FROM " + table + " y WHERE y.site = $1 AND y.key = x.key AND y.rid = x.rid ORDER BY y." +
			value + " " + direction + ", y." + tie + " LIMIT 1)",
	}
	if o.after != nil && (table == "ix_date" || last.Number == 0) {
		operator := " >= "
		if o.Descending {
			operator = " <= "
		}
		bound := any(last.Number)
		if table == "ix_str" {
			bound = nonNilBytes(last.Text)
		}
		driver = append(driver, "x."+value+operator+s.arg(bound))
	}
	ofRid, ofRow, err := s.tests("d.rid", -1, "")
	if err != nil {
		return "", err
	}
	where = append(append(append([]string{"NOT r.deleted"}, where...), ofRid...), ofRow...)
	if o.after != nil {
		where = append(where, s.compiler.behind(&ranking, s.inclusive))
	}
	return "(SELECT " + s.columns + ", " + strings.Join(ranking.columns, ", ") + " FROM (SELECT x.rid, x." + value + " FROM " + table + " x WHERE " +
		strings.Join(append(driver, gates...), " AND ") + " ORDER BY x." + value + " " + direction + ") d CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " +
		s.arg(s.typeName) + " AND x.rid = d.rid LIMIT 1) r" + rival + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY d." + value + " " + direction + " FETCH FIRST (" + s.limit + ") ROWS WITH TIES)", nil
}

// without walks the records that have no value, by id.
func (s *source) without(key string, gates []string) (string, error) {
	ofRid, ofRow, err := s.tests("r.rid", -1, "")
	if err != nil {
		return "", err
	}
	where := append([]string{
		"r.site = $1", "r.typ = " + s.arg(s.typeName), "NOT r.deleted",
		"NOT " + found("ix_str x WHERE x.site = $1 AND x.key = "+key+" AND x.rid = r.rid"),
		"NOT " + found("ix_date x WHERE x.site = $1 AND x.key = "+key+" AND x.rid = r.rid"),
	}, gates...)
	where = append(append(where, ofRid...), ofRow...)
	if s.byParam.last().Missing {
		operator := " > "
		switch {
		case s.byParam.Descending && s.inclusive:
			operator = " <= "
		case s.byParam.Descending:
			operator = " < "
		case s.inclusive:
			operator = " >= "
		}
		where = append(where, "r.id"+operator+s.arg(s.byParam.lastID()))
	}
	return "(SELECT " + s.columns + ", TRUE, 0::int8, ''::bytea FROM res r WHERE " + strings.Join(where, " AND ") +
		" ORDER BY r.id " + direction(s.byParam.Descending) + " LIMIT " + s.limit + ")", nil
}
