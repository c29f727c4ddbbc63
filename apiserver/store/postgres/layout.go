package postgres

import (
	"math"
	"reflect"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// indexTables are the tables of index rows.
var indexTables = []string{"ix_tok", "ix_ref", "ix_str", "ix_date", "ix_pos"}

// copyFrom lists the rows of several records for COPY, by table.
func copyFrom(site int32, rids []int64, all []rows) map[string]copied {
	tables := map[string]copied{}
	for i := range all {
		for _, t := range all[i].tables() {
			into := tables[t.table]
			into.columns = []string{"site", "rid"}
			n := 0
			for _, c := range t.columns {
				into.columns = append(into.columns, c.name)
				n = reflect.ValueOf(c.values).Len()
			}
			for row := range n {
				values := []any{site, rids[i]}
				for _, c := range t.columns {
					values = append(values, reflect.ValueOf(c.values).Index(row).Interface())
				}
				into.rows = append(into.rows, values)
			}
			tables[t.table] = into
		}
	}
	return tables
}

// copied are rows on their way into a table.
type copied struct {
	columns []string
	rows    [][]any
}

// column is one column of rows on their way into a statement.
type column struct {
	name, kind string
	values     any
}

// unnest makes a table of columns.
func (s *statement) unnest(columns []column) (table, names string) {
	arrays, list := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		arrays[i] = s.arg(c.values) + "::" + c.kind + "[]"
		list[i] = c.name
	}
	names = strings.Join(list, ", ")
	return "unnest(" + strings.Join(arrays, ", ") + ") u(" + names + ")", names
}

// tables lists the columns of the rows by table.
func (r *rows) tables() []tableRows {
	var all []tableRows
	// Of the columns given, those of the key come first.
	add := func(name string, n, keyed int, columns ...column) {
		if n > 0 {
			all = append(all, tableRows{name, columns, keyed})
		}
	}
	sys, key, code := split3(r.tokens, func(t tokenRow) (int64, int64, int64) { return t.sys, t.key, t.code })
	add("ix_tok", len(r.tokens), 3, column{"sys", "int8", sys}, column{"key", "int8", key}, column{"code", "int8", code})
	key, tgt, base := split3(r.references, func(t referenceRow) (int64, int64, int64) { return t.key, t.tgt, t.base })
	add("ix_ref", len(r.references), 3, column{"key", "int8", key}, column{"tgt", "int8", tgt}, column{"base", "int8", base})
	more, key, val := split3(r.texts, func(t textRow) (int64, int64, []byte) { return t.more, t.key, []byte(t.val) })
	facets, whole, orig := split3(r.texts, func(t textRow) (int64, []byte, []byte) {
		return t.facets, optional(t.whole, t.hasWhole), optional(t.orig, t.hasOrig)
	})
	add("ix_str", len(r.texts), 4, column{"more", "int8", more}, column{"key", "int8", key}, column{"val", "bytea", val},
		column{"facets", "int8", facets},
		column{"whole", "bytea", whole}, column{"orig", "bytea", orig})
	facets, _, _ = split3(r.periods, func(t periodRow) (int64, int, int) { return t.facets, 0, 0 })
	key, lo, hi := split3(r.periods, func(t periodRow) (int64, int64, int64) { return t.key, t.lo, t.hi })
	add("ix_date", len(r.periods), 4, column{"key", "int8", key}, column{"lo", "int8", lo}, column{"hi", "int8", hi},
		column{"facets", "int8", facets})
	key, lat, lon := split3(r.points, func(t pointRow) (int64, float64, float64) { return t.key, t.lat, t.lon })
	add("ix_pos", len(r.points), 3, column{"key", "int8", key}, column{"lat", "float8", lat}, column{"lon", "float8", lon})
	return all
}

type tableRows struct {
	table   string
	columns []column
	keyed   int
}

func split3[R, A, B, C any](rows []R, fields func(R) (A, B, C)) ([]A, []B, []C) {
	a, b, c := make([]A, len(rows)), make([]B, len(rows)), make([]C, len(rows))
	for i, row := range rows {
		a[i], b[i], c[i] = fields(row)
	}
	return a, b, c
}

func optional(value string, has bool) []byte {
	if !has {
		return nil
	}
	return []byte(value)
}

// insert writes the rows of the record with a rid, if the part of the statement named when
// did something.
func (r *rows) insert(s *statement, rid, when string) []string {
	var parts []string
	for _, t := range r.tables() {
		table, names := s.unnest(t.columns)
		parts = append(parts, "i_"+t.table+" AS (INSERT INTO "+t.table+" (site, rid, "+names+") SELECT $1, "+rid+", "+names+
			" FROM "+table+" WHERE EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// remove takes the rows of a record away, if the part named when did something.
func (r *rows) remove(s *statement, rid int64, when string) []string {
	var parts []string
	for _, t := range r.tables() {
		rid := s.arg(rid)
		columns := t.columns[:t.keyed]
		table, _ := s.unnest(columns)
		same := make([]string, len(columns))
		for i, c := range columns {
			same[i] = "x." + c.name + " = u." + c.name
		}
		parts = append(parts, "d_"+t.table+" AS (DELETE FROM "+t.table+" x USING "+table+" WHERE x.site = $1 AND x.rid = "+rid+" AND "+
			strings.Join(same, " AND ")+" AND EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// removeAll takes all index rows of some records away, whoever wrote them. It walks ix_tok,
// which is not ordered by record, as a whole: for rows of an older extractor alone.
var removeAll = []string{
	`DELETE FROM ix_tok WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_ref WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_str WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_date WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_pos WHERE site = $1 AND rid = ANY($2::int8[])`,
}

// equals compares a column with one value, or with any of several.
func (s *statement) equals(columnName string, values []int64) string {
	if len(values) == 1 {
		return columnName + " = " + s.arg(values[0])
	}
	return columnName + " = ANY(" + s.arg(values) + "::int8[])"
}

// token are the rows of ix_tok, named x, that a condition takes.
func (x *indexer) token(s *statement, key int64, is store.TokenIs) string {
	where := "x.site = $1 AND x.key = " + s.arg(key)
	if is.Code != nil {
		where += " AND x.code = " + s.arg(x.hash.code(*is.Code))
	}
	if is.System != nil {
		where += " AND x.sys = " + s.arg(x.hash.system(*is.System))
	}
	return where
}

// text are the rows of ix_str, named x, that a condition takes. Ranged compares so that
// the index by value is of use; otherwise it is kept from it.
func text(s *statement, is store.TextIs, ranged bool) string {
	wanted := []byte(is.Text)
	const folded, original = "COALESCE(x.whole, x.val)", "COALESCE(x.orig, x.whole, x.val)"
	beginsWith := func(of string) string {
		return "substring(" + of + " FROM 1 FOR " + s.arg(len(wanted)) + "::int) = " + s.arg(wanted) + "::bytea"
	}
	switch is.Match {
	case store.Contains:
		return "position(" + s.arg(wanted) + "::bytea IN " + folded + ") > 0"
	case store.Exactly:
		return original + " = " + s.arg(wanted)
	case store.StartsExactly:
		return beginsWith(original)
	}
	switch end := after(wanted[:min(len(wanted), longestValue)]); {
	case len(wanted) > longestValue:
		return beginsWith(folded)
	case !ranged:
		return beginsWith("x.val")
	case end == nil:
		return "x.val >= " + s.arg(wanted)
	default:
		return "x.val >= " + s.arg(wanted) + " AND x.val < " + s.arg(end)
	}
}

// period are the rows of ix_date, named x, that an area has. Ranged is as for text.
func period(s *statement, area store.PeriodArea, ranged bool) string {
	lo := "x.lo"
	if !ranged {
		lo = "x.lo + 0"
	}
	var where []string
	if area.From.Least != store.TheBeginning {
		where = append(where, lo+" >= "+s.arg(area.From.Least))
	}
	if area.From.Most != store.TheEnd {
		where = append(where, lo+" <= "+s.arg(area.From.Most))
	}
	if area.Until != store.Unbounded {
		where = append(where, "x.hi BETWEEN "+s.arg(area.Until.Least)+" AND "+s.arg(area.Until.Most))
	}
	if len(where) == 0 {
		return always
	}
	return strings.Join(where, " AND ")
}

// earthRadius is the mean radius of WGS 84, in meters.
const earthRadius = 6371008.8

// point are the rows of ix_pos, named x, that a condition takes.
func point(s *statement, is store.Near) string {
	lat, lon := s.arg(is.Center.Latitude)+"::float8", s.arg(is.Center.Longitude)+"::float8"
	reach := is.Meters/earthRadius*180/math.Pi + 1e-6
	haversine := "power(sin(radians(x.lat - " + lat + ") / 2), 2) + cos(radians(" + lat + ")) * cos(radians(x.lat)) * power(sin(radians(x.lon - " + lon + ") / 2), 2)"
	return "x.lat BETWEEN " + s.arg(is.Center.Latitude-reach) + " AND " + s.arg(is.Center.Latitude+reach) +
		" AND 2 * " + s.arg(earthRadius) + "::float8 * asin(sqrt(least(1, " + haversine + "))) <= " + s.arg(is.Meters) + "::float8"
}
