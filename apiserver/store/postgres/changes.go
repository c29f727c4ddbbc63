package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

var _ store.ChangeLog = (*Store)(nil)

// LogChanges implements store.ChangeLog, by triggers.
func (s *Store) LogChanges(ctx context.Context) error {
	err := s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return schema.LogChanges(ctx, conn.Conn(), s.site) })
	return storeError("begin the log of changes", err)
}

// DropChanges implements store.ChangeLog.
func (s *Store) DropChanges(ctx context.Context) error {
	err := s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return schema.DropChanges(ctx, conn.Conn(), s.site) })
	return storeError("end the log of changes", err)
}

// Mark implements store.ChangeLog. A mark consists of the name of a row of the log, and a snapshot.
// The changes of all transactions that the snapshot does not show are later. A database that has
// lost the end of its write-ahead log, as after a failover to an asynchronous standby, has also
// lost the row.
func (s *Store) Mark(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	name := uuid.NewString()
	mark := `WITH m AS (INSERT INTO ` + schema.ChangesTable(s.site) + ` VALUES ($1, pg_current_xact_id(), '', $2)) SELECT pg_current_snapshot()::text`
	var snapshot string
	if err := s.pool.QueryRow(ctx, mark, s.site, name).Scan(&snapshot); err != nil {
		return "", changesError("mark the log of changes", err)
	}
	return name + " " + snapshot, nil
}

// ChangedSince implements store.ChangeLog.
func (s *Store) ChangedSince(ctx context.Context, mark string) ([]store.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	name, snapshot, valid := strings.Cut(mark, " ")
	if !valid {
		return nil, store.ErrChangesLost
	}
	var keys []store.Key
	err := s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if complete, err := schema.HasChanges(ctx, conn.Conn(), s.site); err != nil || !complete {
			return notComplete(err)
		}
		find := `SELECT DISTINCT c.typ, CASE WHEN c.typ = '' THEN c.id = $3 END, c.id FROM ` + schema.ChangesTable(s.site) + ` c
			WHERE c.site = $1 AND c.xid >= pg_snapshot_xmin($2::text::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, $2::text::pg_snapshot) ORDER BY c.typ, c.id`
		rows, err := conn.Query(ctx, find, s.site, snapshot, name)
		if err != nil {
			return err
		}
		marked := false
		var key store.Key
		var isMark *bool
		_, err = pgx.ForEachRow(rows, []any{&key.Type, &isMark, &key.ID}, func() error {
			if isMark == nil {
				keys = append(keys, key)
			} else {
				marked = marked || *isMark
			}
			return nil
		})
		if err == nil && !marked {
			return store.ErrChangesLost
		}
		return err
	})
	return keys, changesError("read the log of changes", err)
}

// notComplete returns err, or store.ErrChangesLost if it is nil.
func notComplete(err error) error {
	if err != nil {
		return err
	}
	return store.ErrChangesLost
}

// Count implements store.ChangeLog.
func (s *Store) Count(ctx context.Context) (store.Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const count = `SELECT count(*) FILTER (WHERE NOT deleted), count(*) FILTER (WHERE deleted) FROM res WHERE site = $1 AND typ <> $2`
	var counts store.Counts
	err := s.pool.QueryRow(ctx, count, s.site, store.JobType).Scan(&counts.Records, &counts.Tombstones)
	return counts, queryError("count records", err)
}

// changesError is storeError for the log of changes. It returns store.ErrChangesLost if the table of
// the log is missing.
func changesError(doing string, err error) error {
	if errors.Is(err, store.ErrChangesLost) || hasCode(err, undefinedTable) {
		return store.ErrChangesLost
	}
	return storeError(doing, err)
}
