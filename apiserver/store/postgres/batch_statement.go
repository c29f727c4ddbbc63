package postgres

import (
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// batchStatement returns the statement of several writes of different records, in ascending order of
// self. The statement returns a row for each record that was still in the state on which its write
// was decided. It changes no other record. Its text does not depend on the number of writes or rows,
// but only on the parts that the writes need, so that Postgres plans few different statements.
//
//	c    the lock of the writes, and their time
//	ins  creates
//	upd  updates and deletions
//	w    the rows of ins and upd
//	r    arrays of rids and times in the order of the batch, NULL for a record that is not in w
func (s *Store) batchStatement(batch []*pendingWrite) change {
	c := change{statement: s.planIndex.Statement()}
	st := c.statement
	var creates, updates []*pendingWrite
	selves := make([]int64, len(batch))
	for i, w := range batch {
		selves[i] = w.next.self
		if w.Action == store.ActionCreate {
			creates = append(creates, w)
		} else {
			updates = append(updates, w)
		}
	}
	parts := []string{s.batchClock(st)}
	var sources []string
	if len(creates) > 0 {
		parts, sources = append(parts, s.insertRecords(st, creates)), append(sources, "SELECT * FROM ins")
	}
	if len(updates) > 0 {
		parts, sources = append(parts, s.updateRecords(st, updates)), append(sources, "SELECT * FROM upd")
	}
	at := func(column string) string {
		return "ARRAY(SELECT (SELECT w." + column + " FROM w WHERE w.self = k.self) FROM unnest(" + st.Arg(selves) + "::int8[]) k(self)) AS " + column + "s"
	}
	parts = append(parts, "w AS MATERIALIZED ("+strings.Join(sources, " UNION ALL ")+")",
		"r AS MATERIALIZED (SELECT "+at("rid")+", "+at("upd")+")")
	if len(updates) > 0 {
		parts = append(parts, keepSuperseded)
	}
	// Postgres runs modifying CTEs in reverse order. So the events come before the index rows, as in
	// change.
	parts = append(parts, s.insertBatchEvents(st, batch)...)
	parts = append(parts, batchRows(st, batch)...)
	parts = append(parts, s.insertBatchEntries(st, batch)...)
	var paths []indexrow.ReferencePath
	for _, w := range batch {
		paths = append(paths, w.rows.Paths...)
	}
	if c.referencePaths = s.unknownReferencePaths(indexrow.UniquePaths(paths)); len(c.referencePaths) > 0 {
		parts = append(parts, indexrow.InsertPaths(st, c.referencePaths))
	}
	c.sql = "WITH " + strings.Join(parts, ",\n") + "\nSELECT self, rid, upd FROM w"
	return c
}

// batchClock returns the CTE c with the time ms of the batch. It takes the lock of a write
// (clock.go), unless Options.Now is set, and limits the time for which the statement waits for each
// lock.
func (s *Store) batchClock(st *sqlplan.Statement) string {
	ms := beginWrite
	if s.now != nil {
		ms = "(SELECT " + st.Arg(s.now().UnixMilli()) + "::int8 AS ms)"
	}
	return "c AS MATERIALIZED (SELECT ms FROM (SELECT b.ms, set_config('lock_timeout', '" + strconv.Itoa(batchLockMillis) + "', true) FROM " + ms + " b OFFSET 0) b)"
}

// batchRows returns the CTEs that delete and insert index rows.
func batchRows(st *sqlplan.Statement, batch []*pendingWrite) []string {
	old, updates := make([]int64, len(batch)), 0
	for i, w := range batch {
		if w.current != nil {
			old[i] = w.current.rid
			updates++
		}
	}
	added, gone := indexrow.NewBatch(len(batch)), indexrow.NewBatch(updates)
	for i, w := range batch {
		added.Add(int32(i+1), &w.added)
		if w.current != nil {
			gone.Add(int32(i+1), &w.gone)
		}
	}
	return append(gone.Remove(st, "r", "r.rids", old), added.Insert(st, "r", "r.rids")...)
}

// ridOf returns the SQL of a new rid of a record that is created at ms. low is the SQL of its lower
// bits.
func ridOf(ms, low string) string {
	return "((" + ms + " - " + strconv.FormatInt(indexrow.RidEpoch, 10) + ") << " + strconv.Itoa(indexrow.RidShift) + " | " + low + ")"
}

// insertRecords returns the CTE ins, which inserts the rows of creates into res. The statement fails if
// another transaction has created one of the records since the write was decided. With ON CONFLICT, which
// the statement of a single write has, Postgres looks for each row in three indexes first, and writes a
// record of WAL more.
func (s *Store) insertRecords(st *sqlplan.Statement, creates []*pendingWrite) string {
	typ, id, spellings := make([]string, len(creates)), make([]string, len(creates)), make([]*string, len(creates))
	for i, w := range creates {
		typ[i], id[i], spellings[i] = w.next.key.Type, w.next.id, spelling(&w.next)
	}
	columns := s.batchColumns(creates)
	return "ins AS (INSERT INTO res (site, typ, id, spelling, rid, upd, deleted, self, ver, ixsum, method, marks, labelled, labels, links, vals, sig, sig2, sig3, present, packed, body, metadata) SELECT $1, u.typ, u.id, u.spelling, " +
		ridOf("c.ms", "u.low") + ", c.ms, u.deleted, u.self, u.ver, u.ixsum, u.method, " + columns.hashes(st) + ", u.vals, u.sig, u.sig2, u.sig3, u.present, u.labelled, u.body, u.metadata FROM c CROSS JOIN unnest(" +
		st.Arg(typ) + "::text[], " + st.Arg(id) + "::text[], " + st.Arg(spellings) + "::text[], " + columns.unnested(st) + ") u(typ, id, spelling, " + versionNames +
		") RETURNING self, rid, upd)"
}

// updateRecords returns the CTE upd, which replaces rows of res that are in the state on which their
// writes were decided. A tombstone keeps labelled, labels and links of the version before it, and has no
// packed (packedColumn).
func (s *Store) updateRecords(st *sqlplan.Statement, updates []*pendingWrite) string {
	rids, versions, after, metadata := make([]int64, len(updates)), make([]int64, len(updates)), make([]int64, len(updates)), make([][]byte, len(updates))
	for i, w := range updates {
		rids[i], versions[i], after[i], metadata[i] = w.current.rid, w.current.version, w.current.updated.UnixMilli()+1, w.current.metadata.pack()
	}
	columns := s.batchColumns(updates)
	return "upd AS (UPDATE res x SET (rid, upd, deleted, ver, ixsum, method, marks, labelled, labels, links, vals, sig, sig2, sig3, present, packed, claims, body, metadata) = (CASE WHEN u.low < 0 THEN x.rid ELSE " +
		ridOf("GREATEST(c.ms, u.after)", "u.low") + " END, GREATEST(c.ms, u.after), u.deleted, u.ver, u.ixsum, u.method, " + columns.hashesOr(st, "x") + ", u.vals, u.sig, u.sig2, u.sig3, u.present, CASE WHEN u.deleted THEN NULL ELSE u.labelled END, NULL, u.body, u.metadata) FROM c CROSS JOIN unnest(" +
		st.Arg(rids) + "::int8[], " + st.Arg(versions) + "::int8[], " + st.Arg(after) + "::int8[], " + st.Arg(metadata) + "::bytea[], " + columns.unnested(st) +
		") u(was_rid, was_ver, after, was_metadata, " + versionNames + ") WHERE x.site = $1 AND x.self = u.self AND x.rid + 0 = u.was_rid AND x.ver = u.was_ver" +
		" AND x.metadata IS NOT DISTINCT FROM u.was_metadata RETURNING x.self, x.rid, x.upd)"
}

// keepSuperseded is the CTE that copies superseded versions from res to hist. The CTE reads the rows
// as they were before the statement.
const keepSuperseded = `h AS (INSERT INTO hist (site, typ, self, ver, rid, upd, until, method, deleted, labelled, labels, links, body)
	SELECT x.site, x.typ, x.self, x.ver, x.rid, x.upd, u.upd, x.method, x.deleted, x.labelled, x.labels, x.links, x.body
	FROM upd u CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = u.self) x)`
