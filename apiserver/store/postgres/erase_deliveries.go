package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
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
// Of the table event, those with the hash of a subject are read, and those without a hash, which
// older releases stored.
//
// An event that is in neither table at first was moved before, or never existed: the outbox is read
// first, and a later statement sees what the relay has committed since. An event in the outbox may be
// moved at any time, so its deletion needs the lock of the relay. Others do not wait for it, or the relay
// would hardly get the lock during many purges, and the outbox would grow.
//
// A job of a deleted delivery ends without an attempt, and a chain that waited for one is restarted by
// the queue's upkeep.
func (t *transaction) eraseEvents(ctx context.Context, tx pgx.Tx) error {
	if len(t.erased) == 0 {
		return nil
	}
	const inOutbox = `SELECT seq, at, event FROM outbox WHERE site = $1`
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared($1, $2)`, outbox.EraseLock, t.site.site); err != nil {
		return err
	}
	accepted, _, err := t.eventsAbout(ctx, tx, inOutbox)
	if err == nil && len(accepted) > 0 {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, outbox.RelayLock, t.site.site); err != nil {
			return err
		}
		accepted, _, err = t.eventsAbout(ctx, tx, inOutbox)
	}
	if err != nil {
		return err
	}
	subjects := make([]int64, 0, len(t.erased))
	for subject := range t.erased {
		subjects = append(subjects, outbox.SubjectKey(subject))
	}
	handedOn, deliveries, err := t.eventsAbout(ctx, tx, `SELECT seq, at, event FROM event WHERE site = $1 AND (subject = ANY($2) OR subject IS NULL)`, subjects)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM outbox WHERE site = $1 AND seq = ANY($2::int8[])`, t.site.site, accepted)
	batch.Queue(`DELETE FROM event WHERE site = $1 AND seq = ANY($2::int8[])`, t.site.site, handedOn)
	// The queue locks the rows of webhooks before deliveries.
	batch.Queue(`SELECT FROM webhook WHERE site = $1 AND webhook IN (
		SELECT webhook FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[]) AND status = 0) ORDER BY webhook FOR UPDATE`, t.site.site, deliveries)
	batch.Queue(`WITH d AS (DELETE FROM delivery WHERE site = $1 AND id = ANY($2::text[]::uuid[]) RETURNING webhook, status)
		UPDATE webhook w SET pending = w.pending - p.n FROM (SELECT webhook, count(*) AS n FROM d WHERE status = 0 GROUP BY webhook) p
		WHERE w.site = $1 AND w.webhook = p.webhook`, t.site.site, deliveries)
	return tx.SendBatch(ctx, batch).Close()
}

// eventsAbout returns the sequences of those events of a query that are about erased records, and
// the ids of their deliveries.
func (t *transaction) eventsAbout(ctx context.Context, tx pgx.Tx, query string, args ...any) (seqs []int64, deliveries []string, err error) {
	rows, err := tx.Query(ctx, query, append([]any{t.site.site}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	var seq, at int64
	var packed []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &at, &packed}, func() error {
		event, err := outbox.UnpackHead(seq, at, packed)
		if err != nil || !t.erased[strings.ToLower(event.Subject)] {
			return err
		}
		seqs = append(seqs, seq)
		for _, webhook := range event.Targets {
			deliveries = append(deliveries, delivery.DeliveryID(event.ID, webhook))
		}
		return nil
	})
	slices.Sort(deliveries)
	return seqs, deliveries, err
}
