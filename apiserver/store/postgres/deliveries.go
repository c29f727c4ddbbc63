package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

// Deliveries returns the log of the site's deliveries. Package queue writes that log.
func (s *Store) Deliveries() delivery.Log { return deliveryLog{s} }

type deliveryLog struct{ *Store }

// maxCountedDeliveries is the maximum number of deliveries that a query counts, and that its pages
// can reach. It limits the number of index entries that a query reads. A larger total is returned
// as this number.
const maxCountedDeliveries = 10_000

var allStatuses = []delivery.Status{delivery.Pending, delivery.Delivered, delivery.Failed, delivery.Undelivered}

func statusNumbers(statuses []delivery.Status) []int16 {
	numbers := []int16{}
	for _, status := range statuses {
		numbers = append(numbers, outbox.StatusNumber(status))
	}
	return numbers
}

// acceptedWithin returns the bounds of the time of acceptance in a query, in milliseconds since 1970.
// to is not part of the range.
func acceptedWithin(query delivery.Query) (from, to int64) {
	to = 1<<63 - 1
	if !query.To.IsZero() {
		to = query.To.UnixMilli()
	}
	return outbox.Millis(query.From), to
}

const deliveryColumns = `d.id::text, d.webhook, d.seq, d.at, d.status, COALESCE(d.next, d.at), COALESCE(d.finished, 0), d.attempts, e.event`

func scanDelivery(row pgx.CollectableRow, more ...any) (delivery.Delivery, error) {
	var d delivery.Delivery
	var seq, at, next, finished int64
	var status int16
	var attempts, packed []byte
	if err := row.Scan(append([]any{&d.ID, &d.Webhook, &seq, &at, &status, &next, &finished, &attempts, &packed}, more...)...); err != nil {
		return d, err
	}
	d.Status, d.Finished = outbox.StatusOf(status), outbox.Time(finished)
	if d.Status == delivery.Pending {
		d.NextAttempt = outbox.Time(next)
	}
	var err error
	if d.Event, err = outbox.UnpackHead(seq, at, packed); err != nil {
		return d, err
	}
	d.Attempts, err = outbox.Attempts(attempts)
	return d, err
}

// Deliveries implements delivery.Log. The total is exact up to maxCountedDeliveries and never
// greater. Pages after the first maxCountedDeliveries deliveries are empty.
func (s deliveryLog) Deliveries(ctx context.Context, query delivery.Query) ([]delivery.Delivery, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	statuses := query.Statuses
	if len(statuses) == 0 {
		statuses = allStatuses
	}
	numbers := statusNumbers(statuses)
	from, to := acceptedWithin(query)
	const count = `SELECT COALESCE(sum(c.n), 0)::int8 FROM unnest($3::int2[]) s(status) CROSS JOIN LATERAL (
		SELECT count(*) AS n FROM (SELECT FROM delivery d WHERE d.site = $1 AND d.webhook = $2 AND d.status = s.status AND d.at >= $4 AND d.at < $5 LIMIT $6) d) c`
	var total int64
	if err := s.pool.QueryRow(ctx, count, s.site, query.Webhook, numbers, from, to, maxCountedDeliveries).Scan(&total); err != nil {
		return nil, 0, storeError("count deliveries", err)
	}
	total = min(total, maxCountedDeliveries)
	if int64(query.Offset) >= total || query.Count == 0 {
		return nil, total, nil
	}
	const find = `SELECT ` + deliveryColumns + ` FROM (
			SELECT k.id, k.at, k.seq FROM unnest($3::int2[]) s(status) CROSS JOIN LATERAL (
				SELECT d.id, d.at, d.seq FROM delivery d WHERE d.site = $1 AND d.webhook = $2 AND d.status = s.status AND d.at >= $4 AND d.at < $5
				ORDER BY d.at DESC, d.seq DESC LIMIT $6::int + $7::int) k
			ORDER BY k.at DESC, k.seq DESC OFFSET $6 LIMIT $7) k
		CROSS JOIN LATERAL (SELECT * FROM delivery WHERE site = $1 AND id = k.id OFFSET 0) d
		CROSS JOIN LATERAL (SELECT * FROM event WHERE site = $1 AND seq = k.seq OFFSET 0) e ORDER BY k.at DESC, k.seq DESC`
	rows, err := s.pool.Query(ctx, find, s.site, query.Webhook, numbers, from, to, query.Offset, query.Count)
	if err != nil {
		return nil, 0, storeError("list deliveries", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (delivery.Delivery, error) { return scanDelivery(row) })
	return found, total, storeError("list deliveries", err)
}

// Delivery implements delivery.Log.
func (s deliveryLog) Delivery(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// If the id is not a UUID, the cast fails with invalidText.
	const find = `SELECT ` + deliveryColumns + `, e.envelope FROM (SELECT * FROM delivery WHERE site = $1 AND id = $3::text::uuid OFFSET 0) d
		CROSS JOIN LATERAL (SELECT * FROM event WHERE site = $1 AND seq = d.seq OFFSET 0) e WHERE d.webhook = $2`
	rows, err := s.pool.Query(ctx, find, s.site, webhook, id)
	if err != nil {
		return delivery.Delivery{}, storeError("read delivery "+id, err)
	}
	var envelope []byte
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (delivery.Delivery, error) { return scanDelivery(row, &envelope) })
	switch {
	case hasCode(err, invalidText) || err == nil && len(found) == 0:
		return delivery.Delivery{}, store.ErrNotFound
	case err != nil:
		return delivery.Delivery{}, storeError("read delivery "+id, err)
	}
	found[0].Event.Envelope = envelope
	return found[0], nil
}

// invalidText is the SQLSTATE of a text that cannot be cast to a type.
const invalidText = "22P02"

// Redeliver implements delivery.Log. If the webhook is ordered, the delivery waits for earlier
// pending deliveries of the same subject to the webhook.
func (s deliveryLog) Redeliver(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	found, err := s.Delivery(ctx, webhook, id)
	if err != nil {
		return delivery.Delivery{}, err
	}
	if len(found.Event.Envelope) == 0 {
		return delivery.Delivery{}, fmt.Errorf("repeat delivery %s to webhook %s: %w", id, webhook, delivery.ErrContentGone)
	}
	if _, err := s.revive(ctx, webhook, []string{id}); err != nil {
		return delivery.Delivery{}, err
	}
	return s.Delivery(ctx, webhook, id)
}

// replayBatch is the maximum number of deliveries that one transaction makes pending.
const replayBatch = 1000

// Replay implements delivery.Log. It handles one status after the other, and makes the deliveries
// with that status pending in batches, oldest first. It skips deliveries that are pending, and those
// whose envelope the log no longer has. After an error, the deliveries that it has made pending
// remain pending.
func (s deliveryLog) Replay(ctx context.Context, query delivery.Query) (delivery.Replayed, error) {
	statuses := query.Statuses
	if len(statuses) == 0 {
		statuses = allStatuses
	}
	var replayed delivery.Replayed
	for _, status := range statuses {
		if status == delivery.Pending {
			continue
		}
		from, to := acceptedWithin(query)
		for seq, more := int64(-1), true; more; {
			var ids []string
			var gone int
			var err error
			if ids, gone, from, seq, err = s.nextDeliveries(ctx, query.Webhook, status, from, to, seq); err != nil {
				return replayed, err
			}
			n, err := s.revive(ctx, query.Webhook, ids)
			if err != nil {
				return replayed, err
			}
			replayed.Count += n
			replayed.Skipped += int64(gone)
			more = len(ids)+gone == replayBatch
		}
	}
	return replayed, nil
}

// nextDeliveries reads a batch of deliveries that come after the time from and the sequence after, and
// before the time to, in the order of time and sequence. ids are those of the deliveries with an envelope,
// and gone is the number of deliveries without one. at and seq are the time and the sequence of the last
// delivery of the batch, or from and after if there is none.
func (s deliveryLog) nextDeliveries(ctx context.Context, webhook string, status delivery.Status, from, to, after int64) (ids []string, gone int, at, seq int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const find = `SELECT d.id::text, d.at, d.seq, COALESCE((SELECT octet_length(e.envelope) > 0 FROM event e WHERE e.site = $1 AND e.seq = d.seq), false)
		FROM delivery d WHERE d.site = $1 AND d.webhook = $2 AND d.status = $3 AND (d.at, d.seq) > ($4, $5) AND d.at < $6
		ORDER BY d.at, d.seq LIMIT $7`
	rows, err := s.pool.Query(ctx, find, s.site, webhook, outbox.StatusNumber(status), from, after, to, replayBatch)
	if err != nil {
		return nil, 0, 0, 0, storeError("find deliveries", err)
	}
	at, seq = from, after
	var id string
	var complete bool
	_, err = pgx.ForEachRow(rows, []any{&id, &at, &seq, &complete}, func() error {
		if complete {
			ids = append(ids, id)
		} else {
			gone++
		}
		return nil
	})
	return ids, gone, at, seq, storeError("find deliveries", err)
}

// revive makes deliveries of a webhook pending, with an attempt that is due now. It returns how
// many of them were not pending before. If the webhook is ordered, at most one delivery of each
// subject is due, and the other deliveries of the subject wait for it. revive takes locks in the same
// order as package queue: chains, the row of the webhook, deliveries.
func (s deliveryLog) revive(ctx context.Context, webhook string, ids []string) (revived int64, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	now := time.Now()
	if s.now != nil {
		now = s.now()
	}
	const (
		lockChains = `SELECT pg_advisory_xact_lock(k.chain) FROM (
			SELECT DISTINCT d.chain FROM delivery d WHERE d.site = $1 AND d.id = ANY($2::text[]::uuid[]) AND d.chain IS NOT NULL ORDER BY d.chain OFFSET 0) k`
		lockWebhook = `SELECT FROM webhook WHERE site = $1 AND webhook = $2 FOR UPDATE`
		revive      = `WITH old AS MATERIALIZED (SELECT d.id, d.status FROM delivery d WHERE d.site = $1 AND d.id = ANY($3::text[]::uuid[]) AND d.webhook = $2 FOR UPDATE),
			new AS (UPDATE delivery d SET status = 0, tries = 0, job = NULL, finished = NULL, next = CASE WHEN d.chain IS NULL THEN $4::int8 END
				FROM old WHERE d.site = $1 AND d.id = old.id RETURNING old.status),
			n AS (SELECT count(*) AS n FROM new WHERE status <> 0),
			w AS (UPDATE webhook SET pending = pending + n.n FROM n WHERE site = $1 AND webhook = $2)
			SELECT n FROM n`
		start = `UPDATE delivery SET next = $3 WHERE site = $1 AND id IN (
			SELECT f.id FROM (SELECT DISTINCT d.chain FROM delivery d WHERE d.site = $1 AND d.id = ANY($2::text[]::uuid[]) AND d.chain IS NOT NULL) c
			CROSS JOIN LATERAL (SELECT id FROM delivery f WHERE f.site = $1 AND f.chain = c.chain AND f.status = 0 ORDER BY f.seq LIMIT 1) f
			WHERE NOT EXISTS (SELECT FROM delivery a WHERE a.site = $1 AND a.chain = c.chain AND a.status = 0 AND (a.next IS NOT NULL OR a.job IS NOT NULL)))`
	)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(lockChains, s.site, ids)
		batch.Queue(lockWebhook, s.site, webhook)
		batch.Queue(revive, s.site, webhook, ids, now.UnixMilli()).QueryRow(func(row pgx.Row) error { return row.Scan(&revived) })
		batch.Queue(start, s.site, ids, now.UnixMilli())
		return tx.SendBatch(ctx, batch).Close()
	})
	return revived, storeError("make deliveries pending", err)
}

// Recent implements delivery.Log. It counts at most the newest maxCountedDeliveries of each webhook
// and status.
func (s deliveryLog) Recent(ctx context.Context, from time.Time) (delivery.Recent, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const count = `SELECT w.webhook, s.status, c.minute, c.n FROM webhook w CROSS JOIN unnest($2::int2[]) s(status) CROSS JOIN LATERAL (
			SELECT d.at / 60000 AS minute, count(*) AS n FROM (
				SELECT d.at FROM delivery d WHERE d.site = $1 AND d.webhook = w.webhook AND d.status = s.status AND d.at >= $3 ORDER BY d.at DESC, d.seq DESC LIMIT $4) d
			GROUP BY d.at / 60000) c
		WHERE w.site = $1 ORDER BY w.webhook, s.status, c.minute`
	rows, err := s.pool.Query(ctx, count, s.site, statusNumbers(allStatuses), from.UnixMilli(), maxCountedDeliveries)
	if err != nil {
		return delivery.Recent{}, storeError("count recent deliveries", err)
	}
	// list identifies the deliveries of one webhook with one status.
	type list struct {
		webhook string
		status  int16
	}
	counts := delivery.NewRecentCounts(from)
	var at, last list
	var minute, number, counted int64
	var oldest time.Time
	_, err = pgx.ForEachRow(rows, []any{&at.webhook, &at.status, &minute, &number}, func() error {
		accepted := time.UnixMilli(minute * time.Minute.Milliseconds())
		if at != last {
			last, counted, oldest = at, 0, accepted
		}
		counts.Add(accepted, outbox.StatusOf(at.status), number)
		if counted += number; counted == maxCountedDeliveries {
			counts.Incomplete(oldest)
		}
		return nil
	})
	return counts.Recent(), storeError("count recent deliveries", err)
}

// Health implements delivery.Log. It reads two rows and one index entry for each webhook, because
// the number of pending deliveries is stored and updated with each change.
func (s deliveryLog) Health(ctx context.Context) (map[string]delivery.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const find = `SELECT w.webhook, w.pending + COALESCE(r.deliveries, 0), w.last_success, w.failing_since,
		COALESCE((SELECT d.at FROM delivery d WHERE d.site = $1 AND d.webhook = w.webhook AND d.status = 0 ORDER BY d.at, d.seq LIMIT 1), 0)
		FROM webhook w LEFT JOIN relayed r ON r.site = w.site AND r.webhook = w.webhook WHERE w.site = $1`
	rows, err := s.pool.Query(ctx, find, s.site)
	if err != nil {
		return nil, storeError("read the health of webhooks", err)
	}
	all := map[string]delivery.Health{}
	var webhook string
	var pending, success, since, oldest int64
	_, err = pgx.ForEachRow(rows, []any{&webhook, &pending, &success, &since, &oldest}, func() error {
		all[webhook] = delivery.Health{
			Pending: pending, OldestPending: outbox.Time(oldest), LastSuccess: outbox.Time(success), FailingSince: outbox.Time(since),
		}
		return nil
	})
	return all, storeError("read the health of webhooks", err)
}
