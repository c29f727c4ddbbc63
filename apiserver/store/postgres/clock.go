package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pollers ask for what was written since the last time that they were told of. Nothing is
// lost to them if no write appears that is older than what was shown already, whichever
// process makes it. So the time of a write is the database's, and is read under a shared
// lock that is held until the write is visible; the lock's key tells when it was taken, at
// the latest. What is shown by time ends before the oldest of these locks.

const (
	// clockMillis is the database's clock.
	clockMillis = "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"
	// lockMillis is how far the time in keys of locks reaches, a power of two: their other
	// half is the site, negated to tell them from locks on lines.
	lockMillis = 1 << 31
)

// openWrite opens a write and says its time, ms. The inner query comes first.
const openWrite = "(SELECT " + clockMillis + " AS ms FROM (SELECT pg_advisory_xact_lock_shared(-s.site, (" + clockMillis +
	" % 2147483648)::int4) FROM sites s WHERE s.site = $1 OFFSET 0) l)"

// stamp is the table t of one row with the rid and the time of a change of a record that
// is a statement by itself.
func (s *Site) stamp(st *statement, p *plan, current *state) string {
	ms := openWrite
	if s.now != nil {
		ms = "(SELECT " + st.arg(s.now().UnixMilli()) + "::int8 AS ms)"
	}
	updated := "c.ms"
	if current != nil {
		updated = "GREATEST(c.ms, " + st.arg(current.updated.UnixMilli()+1) + ")"
	}
	var rid string
	if current == nil || current.deleted {
		rid = "((u.upd - " + strconv.FormatInt(ridEpoch, 10) + ") << " + strconv.Itoa(ridShift) + " | " + st.arg(s.rids.low()) + "::int8)"
	} else {
		rid = st.arg(p.next.rid) + "::int8"
	}
	return "t AS MATERIALIZED (SELECT " + rid + " AS rid, u.upd FROM (SELECT " + updated + " AS upd FROM " + ms + " c OFFSET 0) u)"
}

// stamped is the same table for a change whose time is known.
func stamped(st *statement, p *plan) string {
	return "t AS (SELECT " + st.arg(p.next.rid) + "::int8 AS rid, " + st.arg(p.next.updated.UnixMilli()) + "::int8 AS upd)"
}

// queueOpen opens the writes of a transaction and reads their time.
func (s *Site) queueOpen(batch *pgx.Batch, into *time.Time) {
	if s.now != nil {
		*into = s.now().UTC().Truncate(time.Millisecond)
		return
	}
	batch.Queue("SELECT ms FROM "+openWrite+" c", s.site).QueryRow(func(row pgx.Row) error {
		var ms int64
		err := row.Scan(&ms)
		*into = time.UnixMilli(ms).UTC()
		return err
	})
}

// acknowledged takes note of the newest time of an own write.
func (s *Site) acknowledged(updated time.Time) {
	for ms := updated.UnixMilli(); ; {
		newest := s.newest.Load()
		if ms <= newest || s.newest.CompareAndSwap(newest, ms) {
			return
		}
	}
}

// settleWait is how long an answer waits for writes of others to end, so that it tells of
// own ones that are newer.
const settleWait = 100 * time.Millisecond

// settled is the time before which no write appears any more, in milliseconds. It is
// behind that of an own write, unless others take too long.
func (s *Site) settled(ctx context.Context, own int64) (int64, error) {
	until := time.Now().Add(settleWait)
	for {
		ms, err := s.oldestOpen(ctx)
		if err != nil || ms > own || time.Now().After(until) {
			return ms, err
		}
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
	}
}

// oldestOpen is the time of the oldest open write, or now. A write that opens after its
// statement began is later than now; one that ended before is visible to the next statement.
func (s *Site) oldestOpen(ctx context.Context) (int64, error) {
	const find = "SELECT c.ms, l.times FROM (SELECT s.site, " + clockMillis + ` AS ms FROM sites s WHERE s.site = $1 OFFSET 0) c CROSS JOIN LATERAL (
		SELECT array_agg(l.objid::int8) AS times FROM pg_locks l
		WHERE c.ms > 0 AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::int8 = 4294967296 - c.site
		AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) l`
	var now int64
	var times []int64
	if err := s.pool.QueryRow(ctx, find, s.site).Scan(&now, &times); err != nil {
		return 0, err
	}
	oldest := now
	for _, at := range times {
		// The nearest time to now that the key can be of.
		distance := (at - now%lockMillis + lockMillis + lockMillis/2) % lockMillis
		oldest = min(oldest, now+distance-lockMillis/2)
	}
	return oldest, nil
}
