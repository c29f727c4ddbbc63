package postgres

import (
	"bytes"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// edit is what a write changes in the tables: a decision, and the index rows that it adds and
// removes.
type edit struct {
	*decision
	// current is the newest version on which the write was decided, or nil.
	current *state
	// rows are the index rows of the record after the write.
	rows        indexrow.Rows
	added, gone indexrow.Rows
	// body is the body of the next version in its stored form. It is nil for an annotation or a purge.
	body   []byte
	events []store.Event
	entry  writeEntry
}

// edit returns the changes of a decision. It sets isPacked and sum of p.next, except for an
// annotation. before are the stored index rows of the current state. events are stored with the
// change. The body is packed before the statement is built, because all writes of a batch wait for that.
func (s *Store) edit(p *decision, current *state, before indexrow.Rows, events []store.Event) *edit {
	e := &edit{decision: p, current: current, events: events}
	if p.Action == store.ActionAnnotate {
		return e
	}
	p.next.isPacked = true
	if p.Action != store.ActionPurge {
		e.body = packState(&p.next)
		if !p.next.deleted {
			e.rows = s.rowsOf(p)
			p.next.sum = e.rows.Sum()
		}
	}
	e.added, e.gone = e.rows, before
	if current != nil && !current.deleted {
		e.added, e.gone = e.rows.Without(&before), before.Without(&e.rows)
	}
	return e
}

// rowsOf returns the index rows of the next version.
func (s *Store) rowsOf(p *decision) indexrow.Rows {
	if p.values != nil {
		return s.index.RowsOf(p.next.key.Type, p.values())
	}
	return s.index.Rows(p.next.key.Type, p.next.body)
}

// change is a statement that writes a record with its history and index rows, or several records
// (batchStatement). If a record is no longer in the state on which its change was decided, the
// statement writes nothing for the record and returns no row for it.
type change struct {
	statement *sqlplan.Statement
	sql       string
	// referencePaths are the reference paths of the record that the table ix_path may not have yet.
	referencePaths []indexrow.ReferencePath
}

// change returns the statement of an edit. timeTable returns the CTE t with the rid and the time of
// the change; annotations and purges need none.
func (s *Store) change(e *edit, timeTable func(*sqlplan.Statement, *decision, *state) string) change {
	p, current := e.decision, e.current
	if p.Action == store.ActionAnnotate {
		return s.annotate(current, &p.next)
	}
	c := change{statement: s.planIndex.Statement()}
	st := c.statement
	var parts []string
	switch p.Action {
	case store.ActionCreate:
		parts = []string{timeTable(st, p, current), insertRecord(st, e)}
	case store.ActionUpdate:
		parts = append([]string{timeTable(st, p, current)}, updateRecord(st, e)...)
	default:
		parts = purgeRecord(st, current)
	}
	if len(e.events) > 0 {
		// Postgres runs modifying CTEs in reverse order. So the events must come before the index
		// rows here: they lock their subjects after the index rows have been changed.
		parts = append(parts, s.insertEvents(st, p, e.events)...)
	}
	if current != nil {
		parts = append(parts, e.gone.Remove(st, current.rid, "w")...)
	}
	if p.Action != store.ActionPurge {
		parts = append(parts, e.added.Insert(st, "(SELECT rid FROM t)", "w")...)
	}
	if c.referencePaths = s.unknownReferencePaths(e.rows.Paths); len(c.referencePaths) > 0 {
		parts = append(parts, indexrow.InsertPaths(st, c.referencePaths))
	}
	if e.entry.Entry != nil {
		parts = append(parts, s.insertEntry(st, &e.entry))
	}
	c.sql = "WITH " + strings.Join(parts, ",\n") + "\nSELECT rid, upd FROM w"
	return c
}

func insertRecord(st *sqlplan.Statement, e *edit) string {
	next, ix := &e.next, &e.rows
	return "w AS (INSERT INTO res (site, typ, id, spelling, rid, self, ver, upd, ixsum, method, deleted, marks, labelled, labels, links, vals, sig, sig2, sig3, present, packed, claims, body, metadata) VALUES ($1, " +
		strings.Join([]string{
			st.Arg(next.key.Type), st.Arg(next.id), st.Arg(spelling(next)), "(SELECT rid FROM t)", st.Arg(next.self),
			st.Arg(next.version), "(SELECT upd FROM t)", st.Arg(next.sum), st.Arg(methodNumber(next.method)),
			"false", st.Arg(nonNil(ix.Marks)), st.Arg(indexrow.LabelledColumn(next.sum)), st.Arg(ix.Labels), st.Arg(ix.Links),
			st.Arg(nonNilBytes(ix.Vals)), st.Arg(ix.Signature[0]), st.Arg(ix.Signature[1]), st.Arg(ix.Signature[2]), st.Arg(ix.Present), st.Arg(indexrow.LabelledColumn(next.sum)), st.Arg(packClaims(next.claims)), st.Arg(e.body),
			st.Arg(next.metadata.pack()),
		}, ", ") + ") ON CONFLICT DO NOTHING RETURNING rid, upd)"
}

// updateRecord returns the CTEs that write a new version and copy the superseded one from res to
// hist.
func updateRecord(st *sqlplan.Statement, e *edit) []string {
	current, next, ix := e.current, &e.next, &e.rows
	set := strings.Join([]string{
		"rid = (SELECT rid FROM t)", "ver = " + st.Arg(next.version), "upd = (SELECT upd FROM t)", "ixsum = " + st.Arg(next.sum),
		"method = " + st.Arg(methodNumber(next.method)), "deleted = " + st.Arg(next.deleted), "marks = " + st.Arg(nonNil(ix.Marks)),
		"vals = " + st.Arg(nonNilBytes(ix.Vals)), "sig = " + st.Arg(ix.Signature[0]), "sig2 = " + st.Arg(ix.Signature[1]), "sig3 = " + st.Arg(ix.Signature[2]), "present = " + st.Arg(ix.Present), "packed = " + st.Arg(packedColumn(next)),
		"claims = " + st.Arg(packClaims(next.claims)), "body = " + st.Arg(e.body),
	}, ", ")
	if !next.deleted { // a tombstone keeps the labels and links of the version before it
		set += ", labelled = " + st.Arg(indexrow.LabelledColumn(next.sum)) + ", labels = " + st.Arg(ix.Labels) + ", links = " + st.Arg(ix.Links)
	}
	if packed := next.metadata.pack(); !bytes.Equal(packed, current.metadata.pack()) {
		set += ", metadata = " + st.Arg(packed)
	}
	at := "site = $1 AND self = " + st.Arg(current.self)
	return []string{
		"w AS (UPDATE res SET " + set + " WHERE " + at + isUnchanged(st, current) + " RETURNING rid, upd)",
		"h AS (INSERT INTO hist (site, typ, self, ver, rid, upd, until, method, deleted, labelled, labels, links, body) SELECT site, typ, self, ver, rid, upd, " +
			"(SELECT upd FROM t), method, deleted, labelled, labels, links, body FROM res WHERE " + at + " AND EXISTS (SELECT FROM w))",
	}
}

func purgeRecord(st *sqlplan.Statement, current *state) []string {
	return []string{
		"w AS (DELETE FROM res WHERE site = $1 AND self = " + st.Arg(current.self) + isUnchanged(st, current) + " RETURNING rid, upd)",
		"h AS (DELETE FROM hist WHERE site = $1 AND self = " + st.Arg(current.self) + " AND EXISTS (SELECT FROM w))",
	}
}

// isUnchanged returns the SQL of a test whether the record is in the state on which the operation
// was decided.
func isUnchanged(st *sqlplan.Statement, current *state) string {
	unchanged := " AND metadata IS NULL"
	if packed := current.metadata.pack(); packed != nil {
		unchanged = " AND metadata = " + st.Arg(packed)
	}
	if !current.isPacked && !current.deleted {
		unchanged += " AND packed IS DISTINCT FROM (ixsum & 2147483647)::int4" // Reindex has not added the rows of ix_text
	}
	return " AND rid + 0 = " + st.Arg(current.rid) + " AND ver = " + st.Arg(current.version) + unchanged
}

// spelling returns the id as it was first stored, or nil if that is in lower case.
func spelling(at *state) *string {
	if at.key.ID == at.id {
		return nil
	}
	return &at.key.ID
}

// packedColumn returns the column packed. It is nil for a tombstone, which has no rows in ix_text. So if
// an earlier release creates the record again with the same ixsum, it does not count as packed.
func packedColumn(at *state) *int32 {
	if at.deleted {
		return nil
	}
	packed := indexrow.LabelledColumn(at.sum)
	return &packed
}

func nonNil(marks []int64) []int64 {
	if marks == nil {
		return []int64{}
	}
	return marks
}

func nonNilBytes(vals []byte) []byte {
	if vals == nil {
		return []byte{}
	}
	return vals
}

// indexRows returns the index rows that this release extracts from a record's body, and those of
// them that are stored. outdated reports whether a release with another extraction wrote the stored
// rows. They are then not known, and stored must not be used.
func (s *Store) indexRows(current *state) (extracted, stored indexrow.Rows, outdated bool) {
	if current == nil || current.deleted {
		return indexrow.Rows{}, indexrow.Rows{}, false
	}
	extracted = s.index.Rows(current.key.Type, current.body)
	stored = extracted
	if !current.isPacked {
		stored = extracted.WithoutIndexedTexts()
	}
	return extracted, stored, extracted.Sum() != current.sum
}

func (s *Store) unknownReferencePaths(paths []indexrow.ReferencePath) []indexrow.ReferencePath {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []indexrow.ReferencePath
	for _, p := range paths {
		if _, known := s.referencePaths[p]; !known {
			fresh = append(fresh, p)
		}
	}
	return fresh
}

// maxCachedPaths is the maximum number of reference paths in memory, per process and site. At the
// limit, further paths are not cached, so every write with one inserts it again. A limit is needed,
// because paths contain types from bodies, which may be any text.
const maxCachedPaths = 10_000

func (s *Store) cacheReferencePaths(paths []indexrow.ReferencePath) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range paths {
		if len(s.referencePaths) < maxCachedPaths {
			s.referencePaths[p] = struct{}{}
		}
	}
}

func (s *Store) result(p *decision) store.Result {
	result := store.Result{Outcome: p.Outcome}
	switch p.Action {
	case store.ActionNone:
		result.Record = p.After
	case store.ActionCreate, store.ActionUpdate, store.ActionAnnotate:
		result.Record = s.record(&p.next)
	}
	return result
}
