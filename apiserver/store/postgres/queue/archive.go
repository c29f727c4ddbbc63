package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// archive copies the deliveries of a site.
type archive struct {
	pool   *pgxpool.Pool
	number int32
}

// NewArchive returns the archive of the deliveries of the site with a number.
func NewArchive(pool *pgxpool.Pool, number int32) delivery.Archive { return archive{pool, number} }

const archivedColumns = `d.id::text, d.webhook, d.seq, d.at, d.status, COALESCE(d.next, 0), COALESCE(d.finished, 0), d.tries, d.attempts, e.event, e.envelope`

func scanArchived(row pgx.CollectableRow) (delivery.Archived, error) {
	var d delivery.Archived
	var seq, at, next, finished int64
	var status int16
	var attempts, packed, envelope []byte
	if err := row.Scan(&d.ID, &d.Webhook, &seq, &at, &status, &next, &finished, &d.Scheduled, &attempts, &packed, &envelope); err != nil {
		return d, err
	}
	d.Status, d.Finished, d.NextAttempt = outbox.StatusOf(status), outbox.Time(finished), outbox.Time(next)
	var err error
	if d.Event, err = outbox.UnpackHead(seq, at, packed); err != nil {
		return d, err
	}
	d.Event.Envelope = envelope
	d.Attempts, err = outbox.Attempts(attempts)
	return d, err
}

// DumpPending implements delivery.Archive. It also returns the deliveries of the events in the
// outbox, which have no rows yet. A delivery that has a job, or that waits for another delivery of
// its chain, has no NextAttempt.
func (a archive) DumpPending(ctx context.Context) (delivery.Backlog, error) {
	pending := delivery.Backlog{States: map[string]delivery.State{}}
	err := pgx.BeginTxFunc(ctx, a.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		const find = `SELECT ` + archivedColumns + ` FROM delivery d JOIN event e ON e.site = d.site AND e.seq = d.seq WHERE d.site = $1 AND d.status = 0`
		rows, err := tx.Query(ctx, find, a.number)
		if err != nil {
			return err
		}
		if pending.Deliveries, err = pgx.CollectRows(rows, scanArchived); err != nil {
			return err
		}
		upcoming, err := a.upcoming(ctx, tx)
		if err != nil {
			return err
		}
		pending.Deliveries = append(pending.Deliveries, upcoming...)
		rows, err = tx.Query(ctx, `SELECT webhook, failures, failing_since, last_success FROM webhook WHERE site = $1`, a.number)
		if err != nil {
			return err
		}
		var webhook string
		var failures int
		var since, success int64
		_, err = pgx.ForEachRow(rows, []any{&webhook, &failures, &since, &success}, func() error {
			pending.States[webhook] = delivery.State{Failures: failures, FailingSince: outbox.Time(since), LastSuccess: outbox.Time(success)}
			return nil
		})
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT last_value FROM outbox_seq`).Scan(&pending.Sequence)
	})
	return pending, archiveError("read the pending deliveries", err)
}

// upcoming returns the deliveries that the relay would make of the events in the outbox. An event that was
// posted twice with the same id is delivered once (insertDeliveries).
func (a archive) upcoming(ctx context.Context, tx pgx.Tx) ([]delivery.Archived, error) {
	rows, err := tx.Query(ctx, `SELECT seq, at, version, event, envelope FROM outbox WHERE site = $1 ORDER BY seq`, a.number)
	if err != nil {
		return nil, err
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return nil, err
	}
	var all []delivery.Archived
	var ids []string
	for _, event := range events {
		for _, webhook := range event.Targets {
			id := delivery.DeliveryID(event.ID, webhook)
			ids = append(ids, id)
			all = append(all, delivery.Archived{Delivery: delivery.Delivery{
				ID: id, Webhook: webhook, Event: event, Status: delivery.Pending, NextAttempt: event.Accepted,
			}})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	known := map[string]bool{}
	rows, err = tx.Query(ctx, `SELECT id::text FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[])`, a.number, ids)
	if err != nil {
		return nil, err
	}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		known[id] = true
		return nil
	})
	return slices.DeleteFunc(all, func(d delivery.Archived) bool {
		was := known[d.ID]
		known[d.ID] = true
		return was
	}), err
}

// DumpEnded implements delivery.Archive. The position is the id of the last delivery that was read. A page
// can have fewer than count deliveries, also none, because it leaves out pending deliveries.
func (a archive) DumpEnded(ctx context.Context, after string, count int) ([]delivery.Archived, string, error) {
	const find = `SELECT ` + archivedColumns + ` FROM (
			SELECT * FROM delivery x WHERE x.site = $1 AND x.id > $2::text::uuid ORDER BY x.id LIMIT $3
		) d JOIN event e ON e.site = d.site AND e.seq = d.seq ORDER BY d.id`
	if after == "" {
		after = "00000000-0000-0000-0000-000000000000"
	}
	rows, err := a.pool.Query(ctx, find, a.number, after, count)
	if err != nil {
		return nil, "", archiveError("read ended deliveries", err)
	}
	all, err := pgx.CollectRows(rows, scanArchived)
	if err != nil || len(all) == 0 {
		return nil, "", archiveError("read ended deliveries", err)
	}
	var ended []delivery.Archived
	for _, d := range all {
		if d.Status != delivery.Pending {
			ended = append(ended, d)
		}
	}
	return ended, all[len(all)-1].ID, nil
}

// restoreBatch is the maximum number of deliveries that one statement inserts.
const restoreBatch = 1000

// restoreTimeout is the statement that sets the statement_timeout of a restore. The timeout of the
// pool is for requests.
const restoreTimeout = `SET LOCAL statement_timeout = '60s'`

// deletePendingEvents deletes the events all of whose deliveries are pending.
const deletePendingEvents = `DELETE FROM event e USING (SELECT DISTINCT seq FROM delivery WHERE site = $1 AND status = 0) p
	WHERE e.site = $1 AND e.seq = p.seq AND NOT EXISTS (SELECT FROM delivery d WHERE d.site = $1 AND d.seq = e.seq AND d.status <> 0)`

// resume resumes the River queues of a site.
const resume = `UPDATE river_queue SET paused_at = NULL WHERE paused_at IS NOT NULL AND starts_with(name, 's' || $1::int4 || '-')`

// RestorePending implements delivery.Archive, in one transaction. It removes the site's events from
// the outbox and the stored states of its webhooks. The breakers of webhooks are closed: the next
// failure opens the breaker of a failing webhook again. RestorePending sets the zero values of
// NextAttempt in pending.Deliveries to the current time.
func (a archive) RestorePending(ctx context.Context, pending delivery.Backlog, ordered func(string) bool) error {
	now := time.Now()
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(restoreTimeout)
		ids := make([]string, len(pending.Deliveries))
		for i := range pending.Deliveries {
			ids[i] = pending.Deliveries[i].ID
		}
		batch.Queue(resume, a.number)
		batch.Queue(deletePendingEvents, a.number)
		batch.Queue(`DELETE FROM delivery WHERE site = $1 AND (status = 0 OR id = ANY($2::text[]::uuid[]))`, a.number, ids)
		for _, table := range []string{"outbox", "webhook", "relayed"} {
			batch.Queue(`DELETE FROM `+table+` WHERE site = $1`, a.number)
		}
		// A later event must have a greater sequence than those of the other engine.
		batch.Queue(`SELECT setval('outbox_seq', $1) FROM outbox_seq WHERE last_value < $1`, max(1, pending.Sequence))
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		for i := range pending.Deliveries {
			if d := &pending.Deliveries[i]; d.NextAttempt.IsZero() {
				d.NextAttempt = now
			}
		}
		if err := a.insert(ctx, tx, pending.Deliveries, ordered); err != nil {
			return err
		}
		// Of each chain only the first delivery is due.
		const block = `UPDATE delivery d SET next = NULL WHERE d.site = $1 AND d.status = 0 AND d.chain IS NOT NULL
			AND EXISTS (SELECT FROM delivery f WHERE f.site = $1 AND f.chain = d.chain AND f.status = 0 AND f.seq < d.seq)`
		if _, err := tx.Exec(ctx, block, a.number); err != nil {
			return err
		}
		return a.insertStates(ctx, tx, pending.States)
	})
	return archiveError("restore the pending deliveries", err)
}

// insertStates inserts the rows of webhooks, with the numbers of their pending deliveries.
func (a archive) insertStates(ctx context.Context, tx pgx.Tx, states map[string]delivery.State) error {
	var webhooks []string
	var failures, since, success []int64
	for webhook, state := range states {
		webhooks = append(webhooks, webhook)
		failures, since = append(failures, int64(state.Failures)), append(since, outbox.Millis(state.FailingSince))
		success = append(success, outbox.Millis(state.LastSuccess))
	}
	const insert = `INSERT INTO webhook (site, webhook, pending, failures, failing_since, last_success)
		SELECT $1, k.webhook, (SELECT count(*) FROM delivery d WHERE d.site = $1 AND d.webhook = k.webhook AND d.status = 0),
			COALESCE(s.failures, 0), COALESCE(s.since, 0), COALESCE(s.success, 0)
		FROM (SELECT webhook FROM delivery WHERE site = $1 UNION SELECT unnest($2::text[])) k(webhook)
		LEFT JOIN unnest($2::text[], $3::int8[], $4::int8[], $5::int8[]) s(webhook, failures, since, success) USING (webhook)`
	_, err := tx.Exec(ctx, insert, a.number, webhooks, failures, since, success)
	return err
}

// RestoreEnded implements delivery.Archive. It waits for purges in progress, so a purge that did not
// see the restored deliveries has ended before RestoreEnded returns.
func (a archive) RestoreEnded(ctx context.Context, ended []delivery.Archived) error {
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, restoreTimeout); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, schema.EraseLock, a.number); err != nil {
			return err
		}
		return a.insert(ctx, tx, ended, func(string) bool { return false })
	})
	return archiveError("restore ended deliveries", err)
}

// insert inserts deliveries and their events, unless they exist. If a stored delivery has ended, and
// the delivery to insert has ended later, because it was made again, the latter replaces the stored
// one.
func (a archive) insert(ctx context.Context, tx pgx.Tx, all []delivery.Archived, ordered func(string) bool) error {
	const insertArchived = `INSERT INTO delivery (site, id, webhook, seq, at, status, tries, next, chain, finished, attempts)
		SELECT $1, d.id::uuid, d.webhook, d.seq, d.at, d.status, d.tries, d.next, d.chain, d.finished, d.attempts
		FROM unnest($2::text[], $3::text[], $4::int8[], $5::int8[], $6::int2[], $7::int4[], $8::int8[], $9::int8[], $10::int8[], $11::bytea[])
			d(id, webhook, seq, at, status, tries, next, chain, finished, attempts)
		ON CONFLICT (site, id) DO UPDATE SET status = EXCLUDED.status, tries = EXCLUDED.tries, finished = EXCLUDED.finished, attempts = EXCLUDED.attempts
		WHERE delivery.status <> 0 AND EXCLUDED.status <> 0 AND EXCLUDED.finished > delivery.finished`
	for from := 0; from < len(all); from += restoreBatch {
		part := all[from:min(len(all), from+restoreBatch)]
		if err := a.insertEventsOf(ctx, tx, part); err != nil {
			return err
		}
		var ids, webhooks []string
		var seqs, ats []int64
		var statuses []int16
		var tries []int32
		var next, chains, finished []*int64
		var attempts [][]byte
		for _, d := range part {
			ids, webhooks = append(ids, d.ID), append(webhooks, d.Webhook)
			seqs, ats = append(seqs, d.Event.Sequence), append(ats, d.Event.Accepted.UnixMilli())
			statuses, tries = append(statuses, outbox.StatusNumber(d.Status)), append(tries, int32(d.Scheduled)) //nolint:gosec // a schedule has few attempts
			var due, ended, chain *int64
			if d.Status == delivery.Pending {
				due = new(d.NextAttempt.UnixMilli())
			} else {
				ended = new(d.Finished.UnixMilli())
			}
			if d.Status == delivery.Pending && d.Event.Subject != "" && ordered(d.Webhook) {
				chain = new(chainKey(d.Webhook, d.Event.Subject))
			}
			next, finished, chains = append(next, due), append(finished, ended), append(chains, chain)
			var log []byte
			for _, attempt := range d.Attempts {
				var err error
				if log, err = outbox.AddAttempt(log, attempt); err != nil {
					return err
				}
			}
			attempts = append(attempts, log)
		}
		if _, err := tx.Exec(ctx, insertArchived, a.number, ids, webhooks, seqs, ats, statuses, tries, next, chains, finished, attempts); err != nil {
			return err
		}
	}
	return nil
}

// insertEventsOf inserts the events of deliveries. The targets of an event are those that the
// deliveries have, the webhooks of the deliveries, and those of the event if it is stored already:
// the Cluster engine returns each delivery with its own webhook only. If a target were missing, its
// delivery would remain when the event is erased or trimmed.
func (a archive) insertEventsOf(ctx context.Context, tx pgx.Tx, all []delivery.Archived) error {
	events := map[int64]*store.AcceptedEvent{}
	for i := range all {
		event := all[i].Event
		event.Targets = append(slices.Clone(event.Targets), all[i].Webhook)
		if other := events[event.Sequence]; other != nil {
			event.Targets = append(event.Targets, other.Targets...)
			if len(event.Envelope) == 0 { // the log of this webhook has dropped the envelope
				event.Envelope = other.Envelope
			}
		}
		events[event.Sequence] = &event
	}
	rows, err := tx.Query(ctx, `SELECT seq, at, event FROM event WHERE site = $1 AND seq = ANY($2::int8[])`, a.number, slices.Collect(maps.Keys(events)))
	if err != nil {
		return err
	}
	var seq, at int64
	var packed []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &at, &packed}, func() error {
		known, err := outbox.UnpackHead(seq, at, packed)
		events[seq].Targets = append(events[seq].Targets, known.Targets...)
		return err
	})
	if err != nil {
		return err
	}
	var seqs, ats, subjects []int64
	var heads, envelopes [][]byte
	for _, seq := range slices.Sorted(maps.Keys(events)) {
		event := events[seq]
		slices.Sort(event.Targets)
		head, _ := outbox.Pack(store.Event{ID: event.ID, Type: event.Type, Subject: event.Subject, Targets: slices.Compact(event.Targets), Restricted: event.Restricted})
		seqs, ats, subjects = append(seqs, seq), append(ats, event.Accepted.UnixMilli()), append(subjects, outbox.SubjectKey(event.Subject))
		if event.Envelope == nil {
			event.Envelope = []byte{}
		}
		heads, envelopes = append(heads, head), append(envelopes, event.Envelope)
	}
	const insert = insertEventRows + `ON CONFLICT (site, seq) DO UPDATE SET event = EXCLUDED.event, envelope = CASE event.envelope WHEN '' THEN EXCLUDED.envelope ELSE event.envelope END`
	_, err = tx.Exec(ctx, insert, a.number, seqs, ats, subjects, heads, envelopes)
	return err
}

func archiveError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
}
