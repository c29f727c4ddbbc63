package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

// webhookKey identifies a webhook by its site and its id.
type webhookKey struct {
	site    int32
	webhook string
}

// webhookState is a row of the table "webhook". The transaction that uses it has locked the row.
type webhookState struct {
	delivery.State
	// wasOpen reports whether the breaker was open before the results were applied.
	wasOpen bool
	// ended is the number of deliveries that the results have ended.
	ended int64
	// probe is the id of the River job that makes the single attempt of an open breaker, or nil.
	probe *int64
}

func (s *webhookState) isOpen() bool { return !s.OpenUntil.IsZero() }

type states map[webhookKey]*webhookState

// sorted returns the keys in the order in which all transactions lock the rows.
func (s states) sorted() []webhookKey {
	keys := make([]webhookKey, 0, len(s))
	for key := range s {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b webhookKey) int {
		return cmp.Or(cmp.Compare(a.site, b.site), cmp.Compare(a.webhook, b.webhook))
	})
	return keys
}

// concerned returns the webhooks of the results, without their states. It includes webhooks whose
// probe is a job of the results.
func concerned(ctx context.Context, tx pgx.Tx, sites []int32, batch []*result) (states, error) {
	found := states{}
	var probes []int64
	for _, r := range batch {
		if r.job != nil {
			found[webhookKey{r.site, r.job.webhook}] = nil
		} else if r.row.Queue == probeQueue {
			probes = append(probes, r.row.ID)
		}
	}
	if len(probes) == 0 {
		return found, nil
	}
	// These probes ended without an attempt, so only the table says which webhooks they belong to.
	rows, err := tx.Query(ctx, `SELECT site, webhook FROM webhook WHERE site = ANY($1::int4[]) AND probe = ANY($2::int8[])`, sites, probes)
	if err != nil {
		return nil, err
	}
	var key webhookKey
	_, err = pgx.ForEachRow(rows, []any{&key.site, &key.webhook}, func() error {
		found[key] = nil
		return nil
	})
	return found, err
}

// queueLock queues the statement that locks and reads the rows of the webhooks. The state of a
// webhook without a row stays nil.
func (s states) queueLock(statements *pgx.Batch) {
	var sites []int32
	var webhooks []string
	for _, key := range s.sorted() {
		sites, webhooks = append(sites, key.site), append(webhooks, key.webhook)
	}
	const lock = `SELECT w.site, w.webhook, w.failures, w.failing_since, w.last_success, w.open_until, w.probe
		FROM unnest($1::int4[], $2::text[]) WITH ORDINALITY k(site, webhook, n)
		CROSS JOIN LATERAL (SELECT * FROM webhook x WHERE x.site = k.site AND x.webhook = k.webhook FOR UPDATE) w ORDER BY k.n`
	statements.Queue(lock, sites, webhooks).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var key webhookKey
			var since, success, open int64
			state := &webhookState{}
			if err := rows.Scan(&key.site, &key.webhook, &state.Failures, &since, &success, &open, &state.probe); err != nil {
				return err
			}
			state.FailingSince, state.LastSuccess, state.OpenUntil = outbox.Time(since), outbox.Time(success), outbox.Time(open)
			state.wasOpen = state.isOpen()
			s[key] = state
		}
		return rows.Err()
	})
}

// apply updates the states by the results. It considers only attempts whose outcomes were stored.
func (s states) apply(breaker Breaker, batch []*result) {
	for _, r := range batch {
		for _, state := range s {
			if state != nil && state.probe != nil && *state.probe == r.row.ID {
				state.probe = nil
			}
		}
		if !r.applied {
			continue
		}
		state := s[webhookKey{r.site, r.job.webhook}]
		if state == nil {
			continue // the webhook has no row, because the site was erased
		}
		if r.outcome.Status != delivery.Pending {
			state.ended++
		}
		if r.outcome.Attempt.Reason == delivery.ReasonDisabled {
			// Nothing was sent, so the breaker need not protect the receiver.
			state.OpenUntil = time.Time{}
			continue
		}
		state.State = breaker.After(state.State, r.outcome.Attempt)
	}
}

// storeStates stores the states. It pauses the River queues of webhooks whose breaker has opened,
// and resumes those whose breaker has closed.
func (q *Queue) storeStates(ctx context.Context, tx pgx.Tx, all states) error {
	var sites []int32
	var webhooks []string
	var failures, since, success, open, ended []int64
	var probes []*int64
	keys := all.sorted()
	for _, key := range keys {
		state := all[key]
		if state == nil {
			continue
		}
		sites, webhooks = append(sites, key.site), append(webhooks, key.webhook)
		failures, since = append(failures, int64(state.Failures)), append(since, outbox.Millis(state.FailingSince))
		success, open = append(success, outbox.Millis(state.LastSuccess)), append(open, outbox.Millis(state.OpenUntil))
		ended, probes = append(ended, state.ended), append(probes, state.probe)
	}
	const set = `UPDATE webhook w SET failures = s.failures, failing_since = s.since, last_success = s.success, open_until = s.open, pending = w.pending - s.ended, probe = s.probe
		FROM unnest($1::int4[], $2::text[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[]) s(site, webhook, failures, since, success, open, ended, probe)
		WHERE w.site = s.site AND w.webhook = s.webhook`
	if _, err := tx.Exec(ctx, set, sites, webhooks, failures, since, success, open, ended, probes); err != nil {
		return err
	}
	for _, key := range keys {
		state := all[key]
		if state == nil || state.isOpen() == state.wasOpen {
			continue
		}
		change := q.client.QueueResumeTx
		if state.isOpen() {
			change = q.client.QueuePauseTx
		}
		// A River queue that no process polls may have no row. Then it need not be paused or resumed.
		if err := change(ctx, tx, name(key.site, key.webhook), nil); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
	}
	return nil
}
