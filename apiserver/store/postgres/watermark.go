package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/batcher"
)

// maxWatermarkWait is the maximum time for which a search or history waits until the watermark is
// later than the newest write of this process. After that time, the result does not have that
// write.
const maxWatermarkWait = 100 * time.Millisecond

// Watermark implements store.Store.
func (s *Store) Watermark(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ms, err := s.watermark(ctx, s.newest.Load())
	if err != nil {
		return time.Time{}, storeError("find the watermark", err)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// watermark returns the watermark in milliseconds since 1970: no further write will have a time
// before it. It waits until the watermark is later than ownNewest, but at most maxWatermarkWait. After
// that, it reads the watermark once more.
func (s *Store) watermark(ctx context.Context, ownNewest int64) (int64, error) {
	deadline := time.Now().Add(maxWatermarkWait)
	for {
		isLast := time.Now().After(deadline) // before the read: a slow one may be from the time of the own write
		ms, err := s.oldestOpenWrite(ctx)
		if err != nil || ms > ownNewest || isLast {
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

// oldestOpenWrite returns the time of the oldest write in progress, or the database's current time
// if there is none. A write that begins afterwards gets a later time. A write that has ended is
// visible to the next statement. Concurrent calls share a statement that begins after all of them.
func (s *Store) oldestOpenWrite(ctx context.Context) (int64, error) {
	pending := &pendingWatermark{}
	if err := s.watermarks.Do(ctx, pending); err != nil {
		return 0, err
	}
	return pending.ms, pending.err
}

// pendingWatermark is one call of oldestOpenWrite.
type pendingWatermark struct {
	ms  int64
	err error
}

// errWatermarkPanicked is the error of all calls of a batch that panicked.
var errWatermarkPanicked = errors.New("the batch that reads the watermark panicked")

func (s *Store) newWatermarks() *batcher.Batcher[*pendingWatermark] {
	return batcher.New(s.timeout, func(ctx context.Context, batch []*pendingWatermark) {
		for _, pending := range batch {
			pending.err = errWatermarkPanicked
		}
		ms, err := scanWatermark(s.pool.QueryRow(ctx, findOpenWrites, s.site))
		for _, pending := range batch {
			pending.ms, pending.err = ms, err
		}
	})
}

// findOpenWrites selects the time of the database and the keys of the locks that the writes of a
// site hold. OFFSET 0 makes Postgres read the clock first.
const findOpenWrites = "SELECT c.ms, l.times FROM (SELECT " + clockMillis + ` AS ms OFFSET 0) c CROSS JOIN LATERAL (
	SELECT array_agg(l.objid::int8) AS times FROM pg_locks l
	WHERE c.ms > 0 AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::int8 = 4294967296 - $1::int8
	AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) l`

// scanWatermark returns the watermark from a row of findOpenWrites.
func scanWatermark(row pgx.Row) (int64, error) {
	var now int64
	var times []int64
	if err := row.Scan(&now, &times); err != nil {
		return 0, err
	}
	oldest := now
	for _, at := range times {
		// The key is a time modulo lockMillis. Of all times with this key, the nearest to now is
		// meant.
		distance := (at - now%lockMillis + lockMillis + lockMillis/2) % lockMillis
		oldest = min(oldest, now+distance-lockMillis/2)
	}
	return oldest, nil
}
