package queue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

const (
	probePeriod = 250 * time.Millisecond
	healPeriod  = time.Minute
	trimPeriod  = time.Hour
)

// probe moves the oldest job of each webhook whose breaker is open and may be tried again to the
// queue of probes. The result of its attempt closes the breaker or opens it again.
func (q *Queue) probe(ctx context.Context) error {
	const find = `SELECT site, webhook FROM webhook WHERE site = ANY($1::int4[]) AND open_until > 0 AND open_until <= $2 AND probe IS NULL ORDER BY site, webhook`
	rows, err := q.pool.Query(ctx, find, q.numbers(), q.now())
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (key webhookKey, err error) {
		return key, row.Scan(&key.site, &key.webhook)
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		// This locks the row of the webhook first, so that only one of several processes moves a job.
		const move = `WITH w AS MATERIALIZED (SELECT FROM webhook WHERE site = $1 AND webhook = $2 AND open_until > 0 AND open_until <= $3 AND probe IS NULL FOR UPDATE),
			j AS (UPDATE river_job SET queue = $5 WHERE id = (
				SELECT j.id FROM w CROSS JOIN LATERAL (SELECT id FROM river_job WHERE state = 'available' AND queue = $4 ORDER BY priority, scheduled_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) j)
				RETURNING id)
			UPDATE webhook SET probe = j.id FROM j WHERE site = $1 AND webhook = $2`
		if _, err := q.pool.Exec(ctx, move, key.site, key.webhook, q.now(), name(key.site, key.webhook), probeQueue); err != nil {
			return err
		}
	}
	return nil
}

// heal starts chains that have pending deliveries but no active delivery. It also allows a new probe
// for webhooks whose probe has no job any more. Both situations may occur after a crash. Deliveries
// whose jobs River gave up, after MaxAttempts, become due.
func (q *Queue) heal(ctx context.Context) error {
	const lost = `UPDATE webhook w SET probe = NULL WHERE site = ANY($1::int4[]) AND probe IS NOT NULL
		AND NOT EXISTS (SELECT FROM river_job j WHERE j.id = w.probe AND j.finalized_at IS NULL)`
	if _, err := q.pool.Exec(ctx, lost, q.numbers()); err != nil {
		return err
	}
	const discarded = `UPDATE delivery d SET job = NULL, next = $2 FROM river_job j WHERE j.state = 'discarded' AND j.finalized_at IS NOT NULL
		AND (j.args->>'site')::int4 = $1 AND d.site = $1 AND d.id = (j.args->>'delivery')::uuid AND d.job = j.id AND d.status = 0`
	var errs []error
	for _, number := range q.numbers() {
		_, err := q.pool.Exec(ctx, discarded, number, q.now())
		errs = append(errs, err, q.healChains(ctx, number))
	}
	return errors.Join(errs...)
}

// healBatch is the maximum number of chains that one statement checks.
const healBatch = 500

// healChains starts those chains of a site that have pending deliveries but no active delivery.
func (q *Queue) healChains(ctx context.Context, site int32) error {
	// The query skips through the index from chain to chain, so its cost does not depend on the number
	// of deliveries of a chain.
	const find = `WITH RECURSIVE c(key, n) AS (
			(SELECT d.chain, 1 FROM delivery d WHERE d.site = $1 AND d.status = 0 AND d.chain IS NOT NULL AND d.chain >= $2 ORDER BY d.chain LIMIT 1)
			UNION ALL
			SELECT x.chain, c.n + 1 FROM c CROSS JOIN LATERAL (SELECT d.chain FROM delivery d
				WHERE d.site = $1 AND d.status = 0 AND d.chain IS NOT NULL AND d.chain > c.key ORDER BY d.chain LIMIT 1) x WHERE c.n < $3
		) SELECT c.key, EXISTS (SELECT FROM delivery a WHERE a.site = $1 AND a.chain = c.key AND a.status = 0 AND (a.next IS NOT NULL OR a.job IS NOT NULL)) FROM c`
	from := int64(-1 << 63)
	for {
		rows, err := q.pool.Query(ctx, find, site, from, healBatch)
		if err != nil {
			return err
		}
		var stuck []chain
		var key int64
		var active bool
		seen := 0
		_, err = pgx.ForEachRow(rows, []any{&key, &active}, func() error {
			seen++
			if !active {
				stuck = append(stuck, chain{site, key})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := q.restart(ctx, stuck); err != nil {
			return err
		}
		if seen < healBatch || key == 1<<63-1 {
			return nil
		}
		from = key + 1
	}
}

// restart starts chains, if they still have no active delivery after they were locked.
func (q *Queue) restart(ctx context.Context, stuck []chain) error {
	if len(stuck) == 0 {
		return nil
	}
	var jobs []newJob
	err := pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) (err error) {
		if _, err := lockChains(ctx, tx, stuck); err != nil {
			return err
		}
		jobs, err = q.advance(ctx, tx, stuck)
		return err
	})
	if err == nil {
		q.wake(ctx, jobs)
	}
	return err
}

// trim deletes the events, ended deliveries and records of posted events of the sites of this process
// that are older than the retention. Events with a delivery that is left remain. Only one process at
// a time deletes events and deliveries of a site.
func (q *Queue) trim(ctx context.Context) error {
	var errs []error
	for _, number := range q.numbers() {
		if s := q.site(number); s != nil {
			before := q.options.Now().Add(-cmp.Or(s.store.Retention().Deliveries, q.options.Retention))
			errs = append(errs, q.trimSite(ctx, s, before))
		}
	}
	return errors.Join(errs...)
}

func (q *Queue) trimSite(ctx context.Context, s *site, before time.Time) error {
	conn, err := q.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for after, more := int64(0), true; more; {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			more = false
			if ours, err := tryLock(ctx, tx, schema.TrimLock, s.number); err != nil || !ours {
				return err
			}
			after, more, err = trimEvents(ctx, tx, s.number, after, before)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.store.PurgeEvents(ctx, before)
}

// trimBatch is the maximum number of events that one transaction checks.
const trimBatch = 500

// trimEvents checks the oldest events with a sequence greater than after. It deletes those of their
// deliveries that ended before a time, and the events without deliveries. last is the sequence of
// the last event checked. more reports whether further events may have to be checked.
func trimEvents(ctx context.Context, tx pgx.Tx, site int32, after int64, before time.Time) (last int64, more bool, err error) {
	rows, err := tx.Query(ctx, `SELECT seq, at, event FROM event WHERE site = $1 AND seq > $2 ORDER BY seq LIMIT $3`, site, after, trimBatch)
	if err != nil {
		return after, false, err
	}
	var ids []string
	var seqs, of []int64
	var seq, at int64
	var packed []byte
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&seq, &at, &packed}, func() error {
		seen, last = seen+1, seq
		if at >= before.UnixMilli() {
			return nil
		}
		event, err := outbox.UnpackHead(seq, at, packed)
		seqs = append(seqs, seq)
		for _, webhook := range event.Targets {
			ids, of = append(ids, delivery.DeliveryID(event.ID, webhook)), append(of, seq)
		}
		return err
	})
	if err != nil || len(seqs) == 0 {
		return last, false, err // if there is no error, all further events are newer
	}
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[]) AND status <> 0 AND finished < $3`, site, ids, before.UnixMilli())
	batch.Queue(`DELETE FROM event WHERE site = $1 AND seq = ANY($2::int8[]) AND NOT EXISTS (
		SELECT FROM unnest($3::text[], $4::int8[]) d(id, seq) JOIN delivery x ON x.site = $1 AND x.id = d.id::uuid AND x.seq = event.seq WHERE d.seq = event.seq)`, site, seqs, ids, of)
	return last, seen == trimBatch, tx.SendBatch(ctx, batch).Close()
}
