package queue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// One transaction moves up to relayBatch events out of the outbox. It takes no further event once the
// envelopes of its events have relayBytes together, so that they fit into memory and into a message
// of the protocol: an envelope can contain a whole record.
const (
	relayBatch = 500
	relayBytes = 16 << 20
)

// relay moves a batch of a site's events out of the outbox, in the order of their sequence. One
// transaction inserts the events, their deliveries and jobs, and deletes the rows of the outbox.
// Only one process at a time does this for a site. In other processes, relay does nothing.
func (q *Queue) relay(ctx context.Context, s *site) error {
	var jobs []newJob
	err := pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		if ours, err := tryLock(ctx, tx, schema.RelayLock, s.number); err != nil || !ours {
			return err
		}
		events, err := accepted(ctx, tx, s.number)
		if err != nil || len(events) == 0 {
			return err
		}
		made := fanOut(s, events)
		if err := made.block(ctx, tx, s.number); err != nil {
			return err
		}
		jobs = made.jobs(s.number)
		ids, err := q.insert(ctx, tx, jobs)
		if err != nil {
			return err
		}
		if err := q.fault("inserted"); err != nil {
			return err
		}
		if err := made.store(ctx, tx, s.number, ids, events); err != nil {
			return err
		}
		return q.fault("deleted")
	})
	if err != nil {
		return err
	}
	q.wake(ctx, jobs)
	return q.fault("relayed")
}

// accepted reads the site's oldest events in the outbox, within relayBatch and relayBytes.
func accepted(ctx context.Context, tx pgx.Tx, site int32) ([]store.AcceptedEvent, error) {
	const find = `SELECT seq, at, version, event, envelope FROM (
			SELECT *, sum(octet_length(envelope)) OVER (ORDER BY seq) - octet_length(envelope) AS before FROM outbox WHERE site = $1 ORDER BY seq LIMIT $2) o
		WHERE before < $3 ORDER BY seq`
	rows, err := tx.Query(ctx, find, site, relayBatch, relayBytes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEvent)
}

// scanEvent reads a row of the outbox: seq, at, version, event and envelope.
func scanEvent(row pgx.CollectableRow) (store.AcceptedEvent, error) {
	var seq, at, version int64
	var packed, envelope []byte
	if err := row.Scan(&seq, &at, &version, &packed, &envelope); err != nil {
		return store.AcceptedEvent{}, err
	}
	return outbox.Unpack(seq, at, version, packed, envelope)
}

// deliveries are new deliveries, as one slice for each column.
type deliveries struct {
	ids, webhooks []string
	seqs, ats     []int64
	// chains are the chains of the deliveries. An element is nil if the delivery belongs to none,
	// because its webhook is not ordered or its event has no subject.
	chains []*int64
	// blocked reports for each delivery whether it must wait for another delivery of its chain.
	blocked []bool
}

// fanOut returns a delivery for each target of each event.
func fanOut(s *site, events []store.AcceptedEvent) *deliveries {
	d := &deliveries{}
	for _, event := range events {
		for _, webhook := range event.Targets {
			var chain *int64
			if event.Subject != "" && s.sender.Ordered(webhook) {
				key := chainKey(webhook, event.Subject)
				chain = &key
			}
			d.ids, d.webhooks = append(d.ids, delivery.DeliveryID(event.ID, webhook)), append(d.webhooks, webhook)
			d.seqs, d.ats = append(d.seqs, event.Sequence), append(d.ats, event.Accepted.UnixMilli())
			d.chains, d.blocked = append(d.chains, chain), append(d.blocked, false)
		}
	}
	return d
}

// block locks the chains of the deliveries and sets blocked. All new deliveries of a chain but the
// first must wait. The first must wait too if the chain has a pending delivery already.
func (d *deliveries) block(ctx context.Context, tx pgx.Tx, site int32) error {
	var all []chain
	for _, key := range d.chains {
		if key != nil {
			all = append(all, chain{site, *key})
		}
	}
	if len(all) == 0 {
		return nil
	}
	busy, err := lockChains(ctx, tx, all)
	if err != nil {
		return err
	}
	for i, key := range d.chains {
		if key != nil {
			c := chain{site, *key}
			d.blocked[i], busy[c] = busy[c], true
		}
	}
	return nil
}

// jobs returns the jobs of the deliveries that are not blocked.
func (d *deliveries) jobs(site int32) []newJob {
	var jobs []newJob
	for i, id := range d.ids {
		if !d.blocked[i] {
			jobs = append(jobs, newJob{site, id, d.webhooks[i]})
		}
	}
	return jobs
}

const (
	insertEventRows = `INSERT INTO event (site, seq, at, subject, event, envelope) SELECT $1, e.* FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[]) e `
	insertEvents    = insertEventRows + `ON CONFLICT DO NOTHING`
	// insertDeliveries skips deliveries that exist, so that an event that is posted twice with the
	// same id is delivered once. It touches no existing row of the table webhook, because it would
	// wait for the transactions that store the results of attempts. ON CONFLICT alone waits for a row
	// that changes.
	insertDeliveries = `WITH d AS (
			INSERT INTO delivery (site, id, webhook, seq, at, chain, job, status, tries) SELECT $1, d.id::uuid, d.webhook, d.seq, d.at, d.chain, d.job, 0, 0
			FROM unnest($2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::int8[]) d(id, webhook, seq, at, chain, job)
			ON CONFLICT DO NOTHING RETURNING webhook),
		n AS (SELECT webhook, count(*) AS deliveries FROM d GROUP BY webhook),
		w AS (INSERT INTO webhook (site, webhook) SELECT $1, n.webhook FROM n
			WHERE NOT EXISTS (SELECT FROM webhook w WHERE w.site = $1 AND w.webhook = n.webhook) ORDER BY n.webhook ON CONFLICT DO NOTHING)
		INSERT INTO relayed (site, webhook, deliveries) SELECT $1, webhook, deliveries FROM n
		ON CONFLICT (site, webhook) DO UPDATE SET deliveries = relayed.deliveries + EXCLUDED.deliveries`
	deleteOutbox = `DELETE FROM outbox WHERE site = $1 AND seq = ANY($2::int8[])`
)

// store inserts the events and their deliveries, and deletes the rows of the outbox. ids are the ids
// of the jobs, in the order of the result of the method jobs. Events without targets are not stored.
func (d *deliveries) store(ctx context.Context, tx pgx.Tx, site int32, ids []int64, events []store.AcceptedEvent) error {
	var seqs, kept, ats, subjects []int64
	var packed, envelopes [][]byte
	for _, event := range events {
		seqs = append(seqs, event.Sequence)
		if len(event.Targets) == 0 {
			continue // without deliveries, no query needs the event
		}
		head, _ := outbox.Pack(store.Event{ID: event.ID, Type: event.Type, Subject: event.Subject, Targets: event.Targets, Restricted: event.Restricted})
		kept, ats = append(kept, event.Sequence), append(ats, event.Accepted.UnixMilli())
		subjects, packed, envelopes = append(subjects, outbox.SubjectKey(event.Subject)), append(packed, head), append(envelopes, event.Envelope)
	}
	jobs := make([]*int64, len(d.ids))
	for i := range d.ids {
		if !d.blocked[i] {
			jobs[i], ids = &ids[0], ids[1:]
		}
	}
	batch := &pgx.Batch{}
	if len(kept) > 0 {
		batch.Queue(insertEvents, site, kept, ats, subjects, packed, envelopes)
		batch.Queue(insertDeliveries, site, d.ids, d.webhooks, d.seqs, d.ats, d.chains, jobs)
	}
	batch.Queue(deleteOutbox, site, seqs)
	return tx.SendBatch(ctx, batch).Close()
}
