package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	// shortestPause and longestPause limit the pause between two polls for work. The pause doubles as
	// long as there is no work. With shorter pauses, batches are smaller and cost more than the time
	// that they save. Notifications by writers instead of polls would serialize the commits of writes.
	shortestPause = 20 * time.Millisecond
	longestPause  = 160 * time.Millisecond
	// pumpsAtOnce is the maximum number of sites per process whose work is done concurrently. At the
	// limit, the other sites wait for a later poll.
	pumpsAtOnce = 4
)

// pump inserts jobs for events in the outbox and for deliveries that are due again, until ctx ends.
// It does so in batches, one of each site at a time, and sites take turns, so that sites with many events
// do not delay other sites.
func (q *Queue) pump(ctx context.Context) error {
	var running errgroup.Group
	running.SetLimit(pumpsAtOnce)
	defer func() { _ = running.Wait() }() // each goroutine has logged its error
	var mu sync.Mutex
	busy := map[int32]bool{}
	mark := func(site int32, is bool) (was bool) {
		mu.Lock()
		defer mu.Unlock()
		was, busy[site] = busy[site], is
		return was
	}
	pause := shortestPause
	last := int32(0) // the site whose batch was started last
	for {
		found, err := q.find(ctx)
		q.complain(ctx, err, "step", "find sites with work")
		for _, w := range startAfter(found, last) {
			if mark(w.Site, true) {
				continue
			}
			started := running.TryGo(func() error {
				q.complain(ctx, q.move(ctx, w), "site", w.Site)
				mark(w.Site, false)
				return nil
			})
			if !started {
				mark(w.Site, false)
				break
			}
			last = w.Site
		}
		if len(found) > 0 {
			pause = shortestPause
		} else {
			pause = min(2*pause, longestPause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// startAfter returns works, which are in ascending order of their sites, starting with the first one after a
// site. Those up to that site follow at the end.
func startAfter(works []work, site int32) []work {
	i := max(0, slices.IndexFunc(works, func(w work) bool { return w.Site > site }))
	return slices.Concat(works[i:], works[:i])
}

// complain logs an error with attributes, unless ctx has ended. The next poll tries again.
func (q *Queue) complain(ctx context.Context, err error, attributes ...any) {
	if err != nil && ctx.Err() == nil {
		q.options.Log.WarnContext(ctx, "cannot insert jobs for deliveries; the server will retry", append(attributes, "error", err)...)
	}
}

// work is a site with work. Outbox reports whether events are in the outbox, and Due whether
// deliveries are due again.
type work struct {
	Site        int32
	Outbox, Due bool
}

// find returns the sites of this process that have work, in ascending order.
func (q *Queue) find(ctx context.Context) ([]work, error) {
	const find = `SELECT * FROM (SELECT s.site,
		EXISTS (SELECT FROM outbox o WHERE o.site = s.site) AS outbox, EXISTS (SELECT FROM delivery d WHERE d.site = s.site AND d.next <= $2) AS due
		FROM unnest($1::int4[]) s(site) OFFSET 0) w WHERE w.outbox OR w.due`
	rows, err := q.pool.Query(ctx, find, q.numbers(), q.now())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[work])
}

// move inserts the jobs of one batch of a site's work.
func (q *Queue) move(ctx context.Context, w work) error {
	s := q.site(w.Site)
	if s == nil {
		return nil
	}
	if w.Outbox {
		if err := q.relay(ctx, s); err != nil {
			return err
		}
	}
	if w.Due {
		return q.due(ctx, s)
	}
	return nil
}

// dueBatch is the maximum number of jobs that one transaction inserts for deliveries that are due
// again.
const dueBatch = 500

// due inserts the jobs of deliveries whose next attempt is due. It skips those that another process
// has locked.
func (q *Queue) due(ctx context.Context, s *site) error {
	var started []newJob
	err := pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		const find = `SELECT id::text, webhook FROM delivery WHERE site = $1 AND next <= $2 ORDER BY next LIMIT $3 FOR UPDATE SKIP LOCKED`
		rows, err := tx.Query(ctx, find, s.number, q.now(), dueBatch)
		if err != nil {
			return err
		}
		jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (newJob, error) {
			job := newJob{site: s.number}
			err := row.Scan(&job.id, &job.webhook)
			return job, err
		})
		if err != nil || len(jobs) == 0 {
			return err
		}
		started = jobs
		return q.start(ctx, tx, jobs)
	})
	if err == nil {
		q.wake(ctx, started)
	}
	return err
}
