package indexrow

import "strings"

// Batch collects index rows that several records gain or lose, so that one statement inserts or
// deletes them all. Statements have the rows of a table in the order of the first columns of its
// index by value. So rows that follow each other touch the same pages.
type Batch struct {
	rows Rows
	// records is the expected number of records. It only decides how much memory is reserved.
	records int
}

// maxReserved is the maximum number of rows of a table for which a Batch reserves memory in advance. Batches
// of 32 Patients with 19 texts have some 600 of ix_text.
const maxReserved = 4096

// NewBatch returns an empty Batch for a number of records.
func NewBatch(records int) *Batch { return &Batch{records: records} }

// Add adds rows of a record. of is the number of the record in the batch, counted from 1 as the
// subscripts of arrays are. Rows of ix_str are left out if the database does not have the table.
func (b *Batch) Add(of int32, rows *Rows) {
	b.rows.tokens = numbered(b, b.rows.tokens, rows.tokens, of, func(t *tokenRow) *int32 { return &t.of })
	b.rows.references = numbered(b, b.rows.references, rows.references, of, func(t *referenceRow) *int32 { return &t.of })
	if rows.earlier.WideTexts {
		b.rows.texts = numbered(b, b.rows.texts, rows.texts, of, func(t *textRow) *int32 { return &t.of })
	}
	b.rows.indexed = numbered(b, b.rows.indexed, rows.indexed, of, func(t *indexedTextRow) *int32 { return &t.of })
	b.rows.earlier = rows.earlier.or(b.rows.earlier)
	b.rows.periods = numbered(b, b.rows.periods, rows.periods, of, func(t *periodRow) *int32 { return &t.of })
	b.rows.points = numbered(b, b.rows.points, rows.points, of, func(t *pointRow) *int32 { return &t.of })
}

// numbered appends rows with a number to all. If all is empty, numbered reserves as many rows for each record
// of the batch as this record has, because the records of a batch are mostly alike.
func numbered[R any](b *Batch, all, rows []R, of int32, field func(*R) *int32) []R {
	from := len(all)
	if cap(all) == 0 {
		all = make([]R, 0, max(len(rows), min(len(rows)*b.records, maxReserved)))
	}
	all = append(all, rows...)
	for i := from; i < len(all); i++ {
		*field(&all[i]) = of
	}
	return all
}

// Insert returns CTEs that insert the rows. rids is the SQL of an array of the rids of the records,
// in the FROM item from. The rows of a record whose rid is NULL are left out.
func (b *Batch) Insert(st Arguments, from, rids string) []string {
	b.rows.sortUnique()
	var parts []string
	for _, t := range b.rows.inserted() {
		table, names := unnest(st, append(t.columns, column{"of", "int4", t.of()}))
		names = strings.TrimSuffix(names, ", of")
		parts = append(parts, "i_"+t.table+" AS (INSERT INTO "+t.table+" (site, rid, "+names+") SELECT $1, "+rids+"[u.of], "+names+
			" FROM "+from+" CROSS JOIN "+table+" WHERE "+rids+"[u.of] IS NOT NULL)")
	}
	return parts
}

// Remove returns CTEs that delete the rows of the records whose rid in rids is not NULL. old are the
// rids of the records before the write. rids and from are those of Insert.
func (b *Batch) Remove(st Arguments, from, rids string, old []int64) []string {
	b.rows.sortUnique()
	tables := b.rows.tables(b.rows.tokens)
	if len(tables) == 0 {
		return nil
	}
	olds := "(" + st.Arg(old) + "::int8[])"
	var parts []string
	for _, t := range tables {
		keyed := t.columns[:t.keyed:t.keyed]
		table, _ := unnest(st, append(keyed, column{"of", "int4", t.of()}))
		parts = append(parts, "d_"+t.table+" AS (DELETE FROM "+t.table+" x USING "+from+" CROSS JOIN "+table+
			" WHERE x.site = $1 AND x.rid = "+olds+"[u.of] AND "+same(keyed)+" AND "+rids+"[u.of] IS NOT NULL)")
	}
	return parts
}
