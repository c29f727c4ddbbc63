package postgres

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// writeEntry is the entry of the audit log to store with a change, as JSON and in its stored form. Entry is
// nil if the Log stores the entry. The entry is packed before its write waits for the statement of a batch.
type writeEntry struct {
	*audit.Entry
	json, packed []byte
}

// makeEntry returns the entry to store with a change, or the zero writeEntry if the Log stores the entry,
// for example that of an annotation.
func (s *Store) makeEntry(ctx context.Context, d *decision) writeEntry {
	if d.Action == store.ActionAnnotate {
		return writeEntry{}
	}
	e := audit.WriteEntryOf(ctx).Make(d.After.Key, d.Outcome)
	if e == nil {
		return writeEntry{}
	}
	packer := entryPacker{plain: s.earlier().AllTokens}
	json := e.JSON()
	return writeEntry{e, json, packer.append(nil, json)}
}

// noteStored notes that an entry was stored with its write.
func (e *writeEntry) noteStored(ctx context.Context) {
	audit.WriteEntryOf(ctx).Stored(e.Entry, e.json)
}

// isEntryRefused reports whether Postgres has undone a write with an error that its audit entry may have
// caused, for example because the day has no partition yet, or because of a lock on its partition.
func isEntryRefused(ctx context.Context, err error) bool {
	return audit.WriteEntryOf(ctx) != nil && (isUndone(err) || hasCode(err, queryCanceled))
}

// insertEntry returns the CTE that stores an entry with the change of a record, unless w is empty.
func (s *Store) insertEntry(st *sqlplan.Statement, e *writeEntry) string {
	return "a AS (" + auditLog{s}.newRows([]*audit.Entry{e.Entry}, [][]byte{e.packed}).insert(st) + " WHERE EXISTS (SELECT FROM w))"
}

// insertBatchEntries returns the CTE that stores the entries of a batch of writes, without those of records
// that are not in w. It returns none if the writes have no entries.
func (s *Store) insertBatchEntries(st *sqlplan.Statement, batch []*pendingWrite) []string {
	var entries []*audit.Entry
	var packed [][]byte
	var at []int32 // the number of the write of each entry
	for i, w := range batch {
		if w.entry.Entry != nil {
			entries, packed = append(entries, w.entry.Entry), append(packed, w.entry.packed)
			at = append(at, int32(i+1)) //nolint:gosec // at most maxBatchedWrites
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return []string{"a AS (" + auditLog{s}.newRows(entries, packed).insert(st) +
		" WHERE (SELECT rids FROM r)[(" + st.Arg(at) + "::int4[])[e.n::int4]] IS NOT NULL)"}
}
