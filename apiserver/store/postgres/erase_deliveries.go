package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// noteErased notes a record whose events and deliveries the transaction must delete (Op.Erase).
func (t *transaction) noteErased(op store.Op) {
	if op.Kind == store.Purge && op.Erase {
		if t.erased == nil {
			t.erased = map[string]bool{}
		}
		t.erased[subjectOf(op.Key)] = true
	}
}

// subjectOf returns the subject of the events about a record, in lower case.
func subjectOf(key store.Key) string { return strings.ToLower(key.Type + "/" + key.ID) }

// eraseEvents deletes the events about erased records, and their deliveries with the responses of
// webhooks. The subject of an event is in its JSON, so all events in the outbox, which are few, are read.
// In the table event, the events with the hash of a subject are read, and the events without a hash,
// which older releases stored.
//
// The outbox is read first, and the table event by a later statement, which sees what the relay has
// committed since. The relay may move an event in the outbox at any time, so the deletion of the
// event needs the lock of the relay. A purge that finds no event in the outbox does not take this
// lock. Otherwise the relay would hardly get it during many purges, and the outbox would grow.
//
// A job of a deleted delivery ends without an attempt. If other deliveries of the same subject waited
// for the deleted one, the upkeep of the queue (Queue.heal) starts the first of them.
func (t *transaction) eraseEvents(ctx context.Context, tx pgx.Tx) error {
	if len(t.erased) == 0 {
		return nil
	}
	found, err := t.findEvents(ctx, tx, `SELECT pg_advisory_xact_lock_shared($1, $2)`, schema.EraseLock)
	if err == nil && len(found.accepted) > 0 {
		found, err = t.findEvents(ctx, tx, `SELECT pg_advisory_xact_lock($1, $2)`, schema.RelayLock)
	}
	if err != nil || len(found.accepted)+len(found.handedOn) == 0 {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM outbox WHERE site = $1 AND seq = ANY($2::int8[])`, t.site.site, found.accepted)
	batch.Queue(`DELETE FROM event WHERE site = $1 AND seq = ANY($2::int8[])`, t.site.site, found.handedOn)
	// The queue locks the rows of webhooks before deliveries.
	batch.Queue(`SELECT FROM webhook WHERE site = $1 AND webhook IN (
		SELECT webhook FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[]) AND status = 0) ORDER BY webhook FOR UPDATE`, t.site.site, found.deliveries)
	batch.Queue(`WITH d AS (DELETE FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[]) RETURNING webhook, status)
		UPDATE webhook w SET pending = w.pending - p.n FROM (SELECT webhook, count(*) AS n FROM d WHERE status = 0 GROUP BY webhook) p
		WHERE w.site = $1 AND w.webhook = p.webhook`, t.site.site, found.deliveries)
	return tx.SendBatch(ctx, batch).Close()
}

// erasedEvents are the events about erased records. accepted are the sequences of those in the table
// outbox, handedOn of those in the table event. deliveries are the ids of their deliveries.
type erasedEvents struct {
	accepted, handedOn []int64
	deliveries         []string
}

// findEvents takes an advisory lock of the site by the statement lock, which it holds until the
// transaction ends. Then it finds the events about erased records.
func (t *transaction) findEvents(ctx context.Context, tx pgx.Tx, lock string, class int) (found erasedEvents, err error) {
	subjects := make([]int64, 0, len(t.erased))
	for subject := range t.erased {
		subjects = append(subjects, outbox.SubjectKey(subject))
	}
	batch := &pgx.Batch{}
	batch.Queue(lock, class, t.site.site)
	batch.Queue(`SELECT seq, at, event FROM outbox WHERE site = $1`, t.site.site).Query(t.eachErased(func(event store.AcceptedEvent) {
		found.accepted = append(found.accepted, event.Sequence)
	}))
	// Postgres cannot use an index for an OR here, as bitmap scans are off.
	const handedOn = `SELECT seq, at, event FROM event WHERE site = $1 AND subject = ANY($2) UNION ALL SELECT seq, at, event FROM event WHERE site = $1 AND subject IS NULL`
	batch.Queue(handedOn, t.site.site, subjects).Query(t.eachErased(func(event store.AcceptedEvent) {
		found.handedOn = append(found.handedOn, event.Sequence)
		for _, webhook := range event.Targets {
			found.deliveries = append(found.deliveries, delivery.DeliveryID(event.ID, webhook))
		}
	}))
	err = tx.SendBatch(ctx, batch).Close()
	slices.Sort(found.deliveries)
	return found, err
}

// eachErased returns a function that calls take for each event about an erased record.
func (t *transaction) eachErased(take func(store.AcceptedEvent)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var seq, at int64
		var packed []byte
		_, err := pgx.ForEachRow(rows, []any{&seq, &at, &packed}, func() error {
			event, err := outbox.UnpackHead(seq, at, packed)
			if err == nil && t.erased[strings.ToLower(event.Subject)] {
				take(event)
			}
			return err
		})
		return err
	}
}
