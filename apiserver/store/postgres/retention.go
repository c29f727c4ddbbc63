package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// retentionBatch is the maximum number of versions that one statement removes, so that the statement
// ends within a second.
const retentionBatch = 1000

// SetRetention sets the retention of the site in this process. A change of Retention.Deliveries takes
// effect when the delivery queue trims deliveries the next time.
func (s *Store) SetRetention(retention store.Retention) { s.retention.Store(&retention) }

// Retention returns the retention that SetRetention has set, or the zero value.
func (s *Store) Retention() store.Retention {
	if retention := s.retention.Load(); retention != nil {
		return *retention
	}
	return store.Retention{}
}

// Retain purges the tombstones from before the cutoff for tombstones. It also removes the versions
// that were superseded before the cutoff for versions. It works in batches. A zero cutoff removes
// nothing. Retain does not purge the tombstones of posted events. The other versions keep their
// numbers. One process at a time does this for a site. In other processes, Retain removes nothing,
// and returns nil without waiting for that process. Retain may wait for the maintenance of other
// sites of the pool (Maintenance). Errors: those of Write. What was removed before an error remains
// removed.
func (s *Store) Retain(ctx context.Context, before store.Cutoffs) (removed store.Retained, err error) {
	if before == (store.Cutoffs{}) {
		return removed, nil
	}
	if err := s.maintenance.sessions.acquire(ctx); err != nil {
		return removed, err
	}
	defer s.maintenance.sessions.release()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return removed, storeError("enforce retention", err)
	}
	defer conn.Release()
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, schema.RetentionLock, s.site).Scan(&locked); err != nil || !locked {
		return removed, storeError("enforce retention", err)
	}
	defer s.unlockRetention(ctx, conn)
	types, err := s.typesOf(ctx)
	if err != nil {
		return removed, storeError("enforce retention", err)
	}
	for _, recordType := range types {
		if !before.Tombstones.IsZero() && recordType != eventType {
			n, err := s.purgeTombstones(ctx, recordType, before.Tombstones)
			removed.Tombstones += n
			if err != nil {
				return removed, err
			}
		}
		if !before.Versions.IsZero() {
			n, err := s.dropVersions(ctx, recordType, before.Versions)
			removed.Versions += n
			if err != nil {
				return removed, storeError("remove old versions", err)
			}
		}
	}
	return removed, nil
}

// unlockRetention releases the lock. If that fails, it closes the connection, which also releases
// the lock.
func (s *Store) unlockRetention(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, schema.RetentionLock, s.site); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

// typesOf returns the types of the site's records. It skips through the index from type to type.
func (s *Store) typesOf(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `WITH RECURSIVE t(typ) AS (
			(SELECT typ FROM res WHERE site = $1 ORDER BY typ LIMIT 1)
			UNION ALL
			SELECT n.typ FROM t CROSS JOIN LATERAL (SELECT typ FROM res WHERE site = $1 AND typ > t.typ ORDER BY typ LIMIT 1) n
		) SELECT typ FROM t`, s.site)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// purgeTombstones purges the tombstones of a type from before a time. A record that is created again
// in the meantime stays.
func (s *Store) purgeTombstones(ctx context.Context, recordType string, before time.Time) (removed int64, err error) {
	for {
		// The first part reads only the index.
		rows, err := s.pool.Query(ctx, `WITH d AS MATERIALIZED (SELECT rid FROM res WHERE site = $1 AND typ = $2 AND deleted)
			SELECT COALESCE(r.spelling, r.id), r.ver FROM d JOIN res r ON r.site = $1 AND r.typ = $2 AND r.rid = d.rid
			WHERE r.deleted AND r.upd < $3 ORDER BY r.upd LIMIT $4`, s.site, recordType, before.UnixMilli(), purgeBatch)
		if err != nil {
			return removed, storeError("find old tombstones", err)
		}
		var ops []store.Op
		var id string
		var version int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &version}, func() error {
			ops = append(ops, store.Op{
				Kind: store.Purge, Key: store.Key{Type: recordType, ID: id}, Method: store.MethodDelete,
				If: store.Precondition{Absent: true, Version: version},
			})
			return nil
		}); err != nil {
			return removed, storeError("find old tombstones", err)
		}
		if len(ops) == 0 {
			return removed, nil
		}
		results, err := s.Write(ctx, ops)
		if store.IsConflict(err) {
			continue // one of them was created again, and is not found any more
		}
		if err != nil {
			return removed, err
		}
		removed += int64(len(results))
	}
}

// dropVersions removes the versions of a type that were superseded before a time.
func (s *Store) dropVersions(ctx context.Context, recordType string, before time.Time) (removed int64, err error) {
	// A version was written before it was superseded, so the index on upd bounds the scan. The cursor
	// skips versions that were written before the time but superseded after it.
	const drop = `WITH old AS (SELECT upd, self, ver, until FROM hist
			WHERE site = $1 AND typ = $2 AND upd < $3 AND (upd, self, ver) > ($4, $5, $6) ORDER BY upd, self, ver LIMIT $7),
		gone AS (DELETE FROM hist h USING old o WHERE h.site = $1 AND h.self = o.self AND h.ver = o.ver AND o.until < $3 RETURNING 1)
		SELECT (SELECT count(*) FROM gone), count(*), COALESCE((array_agg(upd ORDER BY upd DESC, self DESC, ver DESC))[1], 0),
			COALESCE((array_agg(self ORDER BY upd DESC, self DESC, ver DESC))[1], 0), COALESCE((array_agg(ver ORDER BY upd DESC, self DESC, ver DESC))[1], 0) FROM old`
	var upd, self, ver int64
	for {
		var gone, seen int64
		if err := s.pool.QueryRow(ctx, drop, s.site, recordType, before.UnixMilli(), upd, self, ver, retentionBatch).Scan(&gone, &seen, &upd, &self, &ver); err != nil {
			return removed, err
		}
		removed += gone
		if seen < retentionBatch {
			return removed, nil
		}
	}
}
