package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// Renewal is the result of Store.Renew.
type Renewal int

const (
	// Current means that nothing is left to do. All records are indexed by the wanted version of the
	// extraction (store.Extractor.Version) or a later one. The database no longer has tables of earlier
	// releases.
	Current Renewal = iota
	// Elsewhere means that another process is reindexing the site. The caller should try again later.
	Elsewhere
	// Waiting means that all records are indexed, but the database still has tables of earlier
	// releases, for one of the reasons that schema.Contract lists. The caller should try again later.
	Waiting
)

// renewPause is the time between two passes over all records. More than one pass may be needed,
// because during a rolling update servers of the previous release still write outdated index rows.
const renewPause = 10 * time.Second

// Renew reindexes the site unless its index was made with the given version of the extraction or a
// later one (store.Extractor.Version). It resumes an interrupted pass, and repeats passes over all
// records until one finds no record to change. It calls report before the first batch of each pass
// and after each batch. When all records are indexed, it drops the tables of earlier releases
// (schema.Contract). One process at a time does this for a site. In other processes, Renew
// does not wait for that process. It returns Current if there is nothing to do, and otherwise
// Elsewhere. Renew may wait for the maintenance of other sites of the pool (Maintenance). Errors:
// store.ErrMoving, store.ErrUnavailable, ctx.Err().
func (s *Store) Renew(ctx context.Context, version int64, report func(Reindexed)) (Renewal, error) {
	if current, err := s.isCurrent(ctx, version); current || err != nil {
		return Current, storeError("reindex site", err)
	}
	if err := s.maintenance.sessions.acquire(ctx); err != nil {
		return 0, err
	}
	defer s.maintenance.sessions.release()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, storeError("reindex site", err)
	}
	defer conn.Release()
	const find = `SELECT ` + isIndexed + `, pg_try_advisory_lock($3, site) FROM sites WHERE site = $1`
	var current, locked bool
	if err := conn.QueryRow(ctx, find, s.site, version, schema.RenewalLock).Scan(&current, &locked); err != nil {
		return 0, storeError("reindex site", err)
	}
	if !locked {
		if current && !s.hasEarlier() {
			return Current, nil
		}
		return Elsewhere, nil
	}
	defer s.unlockRenewal(ctx, conn)
	if current && s.earlier().WideTexts {
		if current, err = s.isPacked(ctx); err != nil {
			return 0, storeError("reindex site", err)
		}
	}
	for !current {
		changed, err := s.renewalPass(ctx, version, report)
		if err != nil {
			return 0, err
		}
		if changed == 0 {
			break
		}
		timer := time.NewTimer(s.renewPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
	}
	return s.contract(ctx, conn)
}

// isIndexed is the condition that a site was indexed with the extraction $2 or a later one, in the layout of
// this release.
const isIndexed = `extraction >= $2 AND layout >= 2`

// isCurrent reports whether Renew has nothing to do.
func (s *Store) isCurrent(ctx context.Context, version int64) (current bool, err error) {
	if s.hasEarlier() {
		return false, nil
	}
	err = s.pool.QueryRow(ctx, `SELECT `+isIndexed+` FROM sites WHERE site = $1`, s.site, version).Scan(&current)
	return current, err
}

// isPacked reports whether no earlier release has written a record since the last pass.
func (s *Store) isPacked(ctx context.Context) (packed bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM unpacked WHERE site = $1)`, s.site).Scan(&packed)
	if s.lostEarlier(ctx, err) {
		return true, nil
	}
	return packed, err
}

// forgetUnpackedBatch is the number of rows of unpacked that one statement deletes, so that the
// statement ends within a second.
const forgetUnpackedBatch = 10_000

// forgetUnpacked deletes the site's rows of the table unpacked, which name the records that an
// earlier release has written. It must be called before a pass reads the records. If there are such
// rows, the earlier release may be in use again, so the seven days for a rollback begin again.
func (s *Store) forgetUnpacked(ctx context.Context) error {
	for s.earlier().WideTexts {
		const forget = `WITH d AS (DELETE FROM unpacked WHERE site = $1 AND self = ANY(ARRAY(SELECT self FROM unpacked WHERE site = $1 LIMIT $2)) RETURNING self),
			r AS (UPDATE requirement SET texts_until = GREATEST(texts_until, now() + interval '7 days') WHERE EXISTS (SELECT FROM d))
			SELECT EXISTS (SELECT FROM d)`
		var more bool
		err := s.pool.QueryRow(ctx, forget, s.site, forgetUnpackedBatch).Scan(&more)
		if err != nil && !s.lostEarlier(ctx, err) {
			return err
		}
		if !more {
			return nil
		}
	}
	return nil
}

// hasEarlier reports whether the database has tables of earlier releases.
func (s *Store) hasEarlier() bool { return s.earlier() != (indexrow.Earlier{}) }

// contract drops the tables of earlier releases if nothing needs them any more. It returns Current if
// they are gone, and Waiting otherwise.
func (s *Store) contract(ctx context.Context, conn *pgxpool.Conn) (Renewal, error) {
	if !s.hasEarlier() {
		return Current, nil
	}
	done, err := schema.Contract(ctx, conn.Conn())
	if err != nil {
		return 0, storeError("drop the tables of earlier releases", err)
	}
	if !done {
		return Waiting, nil
	}
	return Current, storeError("drop the tables of earlier releases", s.findEarlier(ctx))
}

// unlockRenewal releases the lock. If that fails, it closes the connection, which also releases the
// lock.
func (s *Store) unlockRenewal(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($2, site) FROM sites WHERE site = $1`, s.site, schema.RenewalLock); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

// renewalPass reindexes all records, or those after the point at which a pass for the same version
// was interrupted. It returns the number of changes (Reindexed.Changed), and at least 1 if it resumed
// an interrupted pass. If a full pass changes none, it stores the version as that of the site's
// index.
func (s *Store) renewalPass(ctx context.Context, version int64, report func(Reindexed)) (changed int64, err error) {
	const begin = `UPDATE sites SET
		reindexed_type = CASE WHEN reindexing = $2 THEN reindexed_type ELSE '' END,
		reindexed_id = CASE WHEN reindexing = $2 THEN reindexed_id ELSE '' END, reindexing = $2
		WHERE site = $1 RETURNING reindexed_type, reindexed_id`
	var after store.Key
	if err := s.pool.QueryRow(ctx, begin, s.site, version).Scan(&after.Type, &after.ID); err != nil {
		return 0, storeError("reindex site", err)
	}
	whole := after == store.Key{}
	if err := s.forgetUnpacked(ctx); err != nil {
		return 0, storeError("reindex site", err)
	}
	report(Reindexed{After: after})
	err = s.Reindex(ctx, after, func(done Reindexed) {
		changed = done.Changed
		// If progress is not stored, the next pass reads these records again.
		_, _ = s.pool.Exec(ctx, `UPDATE sites SET reindexed_type = $2, reindexed_id = $3 WHERE site = $1`, s.site, done.After.Type, done.After.ID)
		report(done)
	})
	if err != nil {
		return 0, err
	}
	if !whole {
		changed = max(changed, 1) // Another pass must read the records before the point of interruption.
	}
	const end = `UPDATE sites SET reindexing = 0, reindexed_type = '', reindexed_id = '',
		extraction = CASE WHEN $3 THEN $2 ELSE extraction END, layout = CASE WHEN $3 THEN 2 ELSE layout END WHERE site = $1`
	_, err = s.pool.Exec(ctx, end, s.site, version, changed == 0)
	return changed, storeError("reindex site", err)
}
