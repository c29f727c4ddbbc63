package indexrow

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Arguments collects the arguments of a statement. $1 is always the site.
type Arguments interface {
	// Arg adds an argument and returns its placeholder.
	Arg(value any) string
}

// CopyRows returns the index rows of several records for COPY, sorted by table. The record with the
// rows all[i] has the rid rids[i].
func CopyRows(site int32, rids []int64, all []Rows) []CopiedRows {
	tables := map[string]*CopiedRows{}
	for i := range all {
		for _, t := range all[i].inserted() {
			into := tables[t.table]
			if into == nil {
				into = &CopiedRows{Table: t.table, Columns: []string{"site", "rid"}}
				for _, c := range t.columns {
					into.Columns = append(into.Columns, c.name)
				}
				tables[t.table] = into
			}
			for row := range reflect.ValueOf(t.columns[0].values).Len() {
				values := []any{site, rids[i]}
				for _, c := range t.columns {
					values = append(values, reflect.ValueOf(c.values).Index(row).Interface())
				}
				into.Rows = append(into.Rows, values)
			}
		}
	}
	var sorted []CopiedRows
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		sorted = append(sorted, *tables[name])
	}
	return sorted
}

// CopiedRows are rows of one table for COPY.
type CopiedRows struct {
	Table   string
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

// inserted returns the columns of the rows to insert, by table.
func (r *Rows) inserted() []tableRows {
	if r.earlier.AllTokens {
		return r.tables(r.tokens)
	}
	return r.tables(slices.DeleteFunc(slices.Clone(r.tokens), func(t tokenRow) bool { return t.isEarlier }))
}

// tables returns the columns of some tokens and of all other rows, by table. It leaves out tables
// without rows, and those that the database does not have.
func (r *Rows) tables(tokens []tokenRow) []tableRows {
	var all []tableRows
	if t := tokens; len(t) > 0 {
		all = append(all, tableRows{r.earlier.Tokens(), 3, func() []int32 { return each(t, func(t *tokenRow) int32 { return t.of }) }, []column{
			{"sys", "int8", each(t, func(t *tokenRow) int64 { return t.sys })},
			{"key", "int8", each(t, func(t *tokenRow) int64 { return t.key })},
			{"code", "int8", each(t, func(t *tokenRow) int64 { return t.code })},
		}})
	}
	if t := r.references; len(t) > 0 {
		all = append(all, tableRows{"ix_ref", 3, func() []int32 { return each(t, func(t *referenceRow) int32 { return t.of }) }, []column{
			{"key", "int8", each(t, func(t *referenceRow) int64 { return t.key })},
			{"tgt", "int8", each(t, func(t *referenceRow) int64 { return t.tgt })},
			{"base", "int8", each(t, func(t *referenceRow) int64 { return t.base })},
		}})
	}
	if t := r.indexed; len(t) > 0 {
		all = append(all, tableRows{narrowTexts, 2, func() []int32 { return each(t, func(t *indexedTextRow) int32 { return t.of }) }, []column{
			{"key", "int4", each(t, func(t *indexedTextRow) int32 { return t.key })},
			{"val", "bytea", each(t, func(t *indexedTextRow) []byte { return []byte(t.val) })},
			{"facets", "int8", each(t, func(t *indexedTextRow) int64 { return t.facets })},
		}})
	}
	if t := r.texts; len(t) > 0 && r.earlier.WideTexts {
		all = append(all, tableRows{wideTexts, 4, func() []int32 { return each(t, func(t *textRow) int32 { return t.of }) }, []column{
			{"more", "int8", each(t, func(t *textRow) int64 { return t.more })},
			{"key", "int8", each(t, func(t *textRow) int64 { return t.key })},
			{"val", "bytea", each(t, func(t *textRow) []byte { return []byte(t.val) })},
			{"facets", "int8", each(t, func(t *textRow) int64 { return t.facets })},
			{"whole", "bytea", each(t, func(t *textRow) []byte { return optional(t.whole, t.hasWhole) })},
			{"orig", "bytea", each(t, func(t *textRow) []byte { return optional(t.orig, t.hasOrig) })},
		}})
	}
	if t := r.periods; len(t) > 0 {
		all = append(all, tableRows{"ix_date", 4, func() []int32 { return each(t, func(t *periodRow) int32 { return t.of }) }, []column{
			{"key", "int8", each(t, func(t *periodRow) int64 { return t.key })},
			{"lo", "int8", each(t, func(t *periodRow) int64 { return t.lo })},
			{"hi", "int8", each(t, func(t *periodRow) int64 { return t.hi })},
			{"facets", "int8", each(t, func(t *periodRow) int64 { return t.facets })},
		}})
	}
	if t := r.points; len(t) > 0 {
		all = append(all, tableRows{"ix_pos", 3, func() []int32 { return each(t, func(t *pointRow) int32 { return t.of }) }, []column{
			{"key", "int8", each(t, func(t *pointRow) int64 { return t.key })},
			{"lat", "float8", each(t, func(t *pointRow) float64 { return t.lat })},
			{"lon", "float8", each(t, func(t *pointRow) float64 { return t.lon })},
		}})
	}
	return all
}

// tableRows are rows of one table.
type tableRows struct {
	table string
	// keyed is the number of columns, from the first one, that identify a row of a record.
	keyed int
	// of returns the column with the numbers of the records in their Batch.
	of      func() []int32
	columns []column
}

// each returns a field of all rows as a slice, which can be an argument of unnest in SQL.
func each[R, A any](rows []R, field func(*R) A) []A {
	all := make([]A, len(rows))
	for i := range rows {
		all[i] = field(&rows[i])
	}
	return all
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

// Insert returns CTEs that insert the rows. rid is the SQL of the rid of the record. The CTEs insert
// nothing if the CTE with the name when has no row.
func (r *Rows) Insert(st Arguments, rid, when string) []string {
	var parts []string
	for _, t := range r.inserted() {
		table, names := unnest(st, t.columns)
		parts = append(parts, "i_"+t.table+" AS (INSERT INTO "+t.table+" (site, rid, "+names+") SELECT $1, "+rid+", "+names+
			" FROM "+table+" WHERE EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// Remove returns CTEs that delete the rows of the record with the rid. The CTEs delete nothing if the
// CTE with the name when has no row. Common codes are among the rows: the record may have them since
// the table of tokens was ix_tok.
func (r *Rows) Remove(st Arguments, rid int64, when string) []string {
	var parts []string
	for _, t := range r.tables(r.tokens) {
		rid := st.Arg(rid)
		columns := t.columns[:t.keyed]
		table, _ := unnest(st, columns)
		parts = append(parts, "d_"+t.table+" AS (DELETE FROM "+t.table+" x USING "+table+" WHERE x.site = $1 AND x.rid = "+rid+" AND "+
			same(columns)+" AND EXISTS (SELECT FROM "+when+"))")
	}
	return parts
}

// same returns the SQL of a test whether the columns of x and u are equal.
func same(columns []column) string {
	equal := make([]string, len(columns))
	for i, c := range columns {
		equal[i] = "x." + c.name + " = u." + c.name
	}
	return strings.Join(equal, " AND ")
}

// InsertPaths returns a CTE that inserts those of the reference paths that are not stored yet. The
// CTE inserts nothing if the CTE w has no row.
func InsertPaths(st Arguments, paths []ReferencePath) string {
	typ, param, target := Split3(paths, func(p ReferencePath) (string, string, string) { return p.Type, p.Param, p.Target })
	table, names := unnest(st, []column{{"typ", "text", typ}, {"param", "text", param}, {"target", "text", target}})
	return "p AS (INSERT INTO ix_path (site, " + names + ") SELECT $1, " + names + " FROM " + table +
		" WHERE EXISTS (SELECT FROM w) ON CONFLICT DO NOTHING)"
}
