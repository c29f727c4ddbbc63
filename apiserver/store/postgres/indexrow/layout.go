package indexrow

import (
	"reflect"
	"strings"
)

// Arguments collects the arguments of a statement. $1 is always the site.
type Arguments interface {
	// Arg adds an argument and returns its placeholder.
	Arg(value any) string
}

// Tables are the names of the tables of index rows.
var Tables = []string{"ix_tok", "ix_ref", "ix_str", "ix_date", "ix_pos"}

// CopyRows returns the rows of several records for COPY, by table.
func CopyRows(site int32, rids []int64, all []Rows) map[string]CopiedRows {
	tables := map[string]CopiedRows{}
	for i := range all {
		for _, t := range all[i].tables() {
			into := tables[t.table]
			into.Columns = []string{"site", "rid"}
			n := 0
			for _, c := range t.columns {
				into.Columns = append(into.Columns, c.name)
				n = reflect.ValueOf(c.values).Len()
			}
			for row := range n {
				values := []any{site, rids[i]}
				for _, c := range t.columns {
					values = append(values, reflect.ValueOf(c.values).Index(row).Interface())
				}
				into.Rows = append(into.Rows, values)
			}
			tables[t.table] = into
		}
	}
	return tables
}

// CopiedRows are rows of one table for COPY.
type CopiedRows struct {
	Columns []string
	Rows    [][]any
}

// column is one column of rows, with a slice of its values.
type column struct {
	name, kind string
	values     any
}

// unnest returns the SQL of a table, named u, of columns, and the names of the columns.
func unnest(st Arguments, columns []column) (table, names string) {
	arrays, list := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		arrays[i] = st.Arg(c.values) + "::" + c.kind + "[]"
		list[i] = c.name
	}
	names = strings.Join(list, ", ")
	return "unnest(" + strings.Join(arrays, ", ") + ") u(" + names + ")", names
}

// tables returns the columns of the rows by table.
func (r *Rows) tables() []tableRows {
	var all []tableRows
	// keyed is the number of columns, from the first one, that identify a row of a record.
	add := func(name string, n, keyed int, columns ...column) {
		if n > 0 {
			all = append(all, tableRows{name, columns, keyed})
		}
	}
	sys, key, code := Split3(r.tokens, func(t tokenRow) (int64, int64, int64) { return t.sys, t.key, t.code })
	add("ix_tok", len(r.tokens), 3, column{"sys", "int8", sys}, column{"key", "int8", key}, column{"code", "int8", code})
	key, tgt, base := Split3(r.references, func(t referenceRow) (int64, int64, int64) { return t.key, t.tgt, t.base })
	add("ix_ref", len(r.references), 3, column{"key", "int8", key}, column{"tgt", "int8", tgt}, column{"base", "int8", base})
	more, key, val := Split3(r.texts, func(t textRow) (int64, int64, []byte) { return t.more, t.key, []byte(t.val) })
	facets, whole, orig := Split3(r.texts, func(t textRow) (int64, []byte, []byte) {
		return t.facets, optional(t.whole, t.hasWhole), optional(t.orig, t.hasOrig)
	})
	add("ix_str", len(r.texts), 4, column{"more", "int8", more}, column{"key", "int8", key}, column{"val", "bytea", val},
		column{"facets", "int8", facets},
		column{"whole", "bytea", whole}, column{"orig", "bytea", orig})
	facets, _, _ = Split3(r.periods, func(t periodRow) (int64, int, int) { return t.facets, 0, 0 })
	key, lo, hi := Split3(r.periods, func(t periodRow) (int64, int64, int64) { return t.key, t.lo, t.hi })
	add("ix_date", len(r.periods), 4, column{"key", "int8", key}, column{"lo", "int8", lo}, column{"hi", "int8", hi},
		column{"facets", "int8", facets})
	key, lat, lon := Split3(r.points, func(t pointRow) (int64, float64, float64) { return t.key, t.lat, t.lon })
	add("ix_pos", len(r.points), 3, column{"key", "int8", key}, column{"lat", "float8", lat}, column{"lon", "float8", lon})
	return all
}

type tableRows struct {
	table   string
	columns []column
	keyed   int
}

// Split3 returns three fields of rows as three slices, which can be arguments of unnest in SQL.
func Split3[R, A, B, C any](rows []R, fields func(R) (A, B, C)) ([]A, []B, []C) {
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

// Insert returns CTEs that insert the rows with a rid. They insert nothing if the CTE named when
// has no row.
func (r *Rows) Insert(st Arguments, rid, when string) []string {
	var parts []string
	for _, t := range r.tables() {
		table, names := unnest(st, t.columns)
		parts = append(parts, "i_"+t.table+" AS (INSERT INTO "+t.table+" (site, rid, "+names+") SELECT $1, "+rid+", "+names+
			" FROM "+table+" WHERE EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// Remove returns CTEs that delete the rows with a rid. They delete nothing if the CTE named when
// has no row.
func (r *Rows) Remove(st Arguments, rid int64, when string) []string {
	var parts []string
	for _, t := range r.tables() {
		rid := st.Arg(rid)
		columns := t.columns[:t.keyed]
		table, _ := unnest(st, columns)
		same := make([]string, len(columns))
		for i, c := range columns {
			same[i] = "x." + c.name + " = u." + c.name
		}
		parts = append(parts, "d_"+t.table+" AS (DELETE FROM "+t.table+" x USING "+table+" WHERE x.site = $1 AND x.rid = "+rid+" AND "+
			strings.Join(same, " AND ")+" AND EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// InsertPaths returns a CTE that inserts those of the reference paths that are not stored yet. It
// inserts nothing if the CTE w has no row.
func InsertPaths(st Arguments, paths []ReferencePath) string {
	typ, param, target := Split3(paths, func(p ReferencePath) (string, string, string) { return p.Type, p.Param, p.Target })
	table, names := unnest(st, []column{{"typ", "text", typ}, {"param", "text", param}, {"target", "text", target}})
	return "p AS (INSERT INTO ix_path (site, " + names + ") SELECT $1, " + names + " FROM " + table +
		" WHERE EXISTS (SELECT FROM w) ON CONFLICT DO NOTHING)"
}

// RemoveAll are the statements that delete all index rows of some records. They are for rows that a
// release with another extraction wrote. They are slow: they scan all of the site's rows in ix_tok,
// which has no index by record.
var RemoveAll = []string{
	`DELETE FROM ix_tok WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_ref WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_str WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_date WHERE site = $1 AND rid = ANY($2::int8[])`,
	`DELETE FROM ix_pos WHERE site = $1 AND rid = ANY($2::int8[])`,
}
