package postgres

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// makeEntry returns the entry of the audit log to store with a change, or nil. The Log stores the entry of
// an annotation.
func makeEntry(ctx context.Context, d *decision) *audit.Entry {
	if d.Action == store.ActionAnnotate {
		return nil
	}
	return audit.WriteEntryOf(ctx).Make(d.After.Key, d.Outcome)
}

// isEntryRefused reports whether Postgres has undone a write with an error that its audit entry may have
// caused, for example because the day has no partition yet, or because of a lock on its partition.
func isEntryRefused(ctx context.Context, err error) bool {
	return audit.WriteEntryOf(ctx) != nil && (isUndone(err) || hasCode(err, queryCanceled))
}

// insertEntry returns the CTE that stores an entry with the change of a record, unless w is empty.
func (s *Store) insertEntry(st *sqlplan.Statement, e *audit.Entry) string {
	return "a AS (" + auditLog{s}.newRows([]*audit.Entry{e}).insert(st) + " WHERE EXISTS (SELECT FROM w))"
}

// insertBatchEntries returns the CTE that stores the entries of a batch of writes, without those of records
// that are not in w. It returns none if the writes have no entries.
func (s *Store) insertBatchEntries(st *sqlplan.Statement, batch []*pendingWrite) []string {
	var entries []*audit.Entry
	var at []int32 // the number of the write of each entry
	for i, w := range batch {
		if w.entry != nil {
			entries, at = append(entries, w.entry), append(at, int32(i+1)) //nolint:gosec // at most maxBatchedWrites
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return []string{"a AS (" + auditLog{s}.newRows(entries).insert(st) +
		" WHERE (SELECT rids FROM r)[(" + st.Arg(at) + "::int4[])[e.n::int4]] IS NOT NULL)"}
}
