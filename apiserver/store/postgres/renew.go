package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Renewal says what became of a Renew.
type Renewal int

const (
	// Current says that all records are indexed by this version of the extraction, or by a later one.
	Current Renewal = iota
	// Elsewhere says that another process is at it.
	Elsewhere
)

// renewPause is between two passes: while a release is rolled out, servers of the last one
// write records that are indexed their way.
const renewPause = 10 * time.Second

// renewalLock is the class of the advisory locks of those who reindex a site.
const renewalLock = 0x7061646b

// Renew brings a site's index to a version of the extraction: it indexes records anew, where
// an interrupted one left off, until a pass over all of them finds none that was indexed
// otherwise. One process at a time does it for a site. Report is called before the first
// portion and after each. Versions rise with releases.
func (s *Site) Renew(ctx context.Context, version int64, report func(Reindexed)) (Renewal, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, storeError("reindex site", err)
	}
	defer conn.Release()
	const find = `SELECT extraction >= $2, pg_try_advisory_lock($3, site) FROM sites WHERE site = $1`
	var current, locked bool
	if err := conn.QueryRow(ctx, find, s.site, version, renewalLock).Scan(&current, &locked); err != nil {
		return 0, storeError("reindex site", err)
	}
	if !locked {
		if current {
			return Current, nil
		}
		return Elsewhere, nil
	}
	defer s.unlockRenewal(ctx, conn)
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
	return Current, nil
}

// unlockRenewal lets others at it. Where that fails the connection is not used again, which
// unlocks too.
func (s *Site) unlockRenewal(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($2, site) FROM sites WHERE site = $1`, s.site, renewalLock); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

// renewalPass goes over the records behind where an interrupted pass of that version was,
// and returns how many it changed. A whole pass without a change is noted as the version.
func (s *Site) renewalPass(ctx context.Context, version int64, report func(Reindexed)) (changed int64, err error) {
	const begin = `UPDATE sites SET
		reindexed_type = CASE WHEN reindexing = $2 THEN reindexed_type ELSE '' END,
		reindexed_id = CASE WHEN reindexing = $2 THEN reindexed_id ELSE '' END, reindexing = $2
		WHERE site = $1 RETURNING reindexed_type, reindexed_id`
	var after store.Key
	if err := s.pool.QueryRow(ctx, begin, s.site, version).Scan(&after.Type, &after.ID); err != nil {
		return 0, storeError("reindex site", err)
	}
	whole := after == store.Key{}
	report(Reindexed{After: after})
	err = s.Reindex(ctx, after, func(done Reindexed) {
		changed = done.Changed
		// Progress that is not noted costs no more than looking at those records again.
		_, _ = s.pool.Exec(ctx, `UPDATE sites SET reindexed_type = $2, reindexed_id = $3 WHERE site = $1`, s.site, done.After.Type, done.After.ID)
		report(done)
	})
	if err != nil {
		return 0, err
	}
	if !whole {
		changed = max(changed, 1) // what came before it is looked at once more
	}
	const end = `UPDATE sites SET reindexing = 0, reindexed_type = '', reindexed_id = '',
		extraction = CASE WHEN $3 THEN $2 ELSE extraction END WHERE site = $1`
	_, err = s.pool.Exec(ctx, end, s.site, version, changed == 0)
	return changed, storeError("reindex site", err)
}
