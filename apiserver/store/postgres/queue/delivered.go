package queue

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

// isPlainSuccess reports whether settleDelivered can store a result.
func (r *result) isPlainSuccess() bool {
	return r.outcome != nil && r.outcome.Status == delivery.Delivered && r.outcome.Attempt.Reason == delivery.ReasonDelivered &&
		r.job.chain == nil && r.row.Queue != probeQueue
}

// settleDelivered stores a batch of successes in one round trip, so that the rows of webhooks, for
// which other transactions wait, are locked for a short time. A success always resets the failures of
// a webhook, so no state has to be read before. left are the results of webhooks whose breaker is
// open or has a probe, or that have no row. They are not stored.
func (q *Queue) settleDelivered(ctx context.Context, batch []*result) (left []*result, err error) {
	if err := q.fault("ended"); err != nil {
		return nil, err
	}
	all := states{}
	sites, webhooks, ids, jobs := make([]int32, len(batch)), make([]string, len(batch)), make([]string, len(batch)), make([]int64, len(batch))
	tries, attempts, ats := make([]int32, len(batch)), make([][]byte, len(batch)), make([]int64, len(batch))
	for i, r := range batch {
		all[webhookKey{r.site, r.job.webhook}] = nil
		sites[i], webhooks[i], ids[i], jobs[i] = r.site, r.job.webhook, r.delivery, r.row.ID
		tries[i], attempts[i], ats[i] = int32(r.tries), r.attempts, outbox.Millis(r.outcome.Attempt.At) //nolint:gosec // a schedule has few attempts
	}
	// The first statement of the transaction (queueLock) has locked the rows of the webhooks, so this
	// statement sees the same breakers.
	const set = `WITH r AS MATERIALIZED (
			SELECT r.* FROM unnest($1::int4[], $2::text[], $3::text[], $4::int8[], $5::int4[], $6::bytea[], $7::int8[]) r(site, webhook, id, job, tries, attempts, at)
			WHERE EXISTS (SELECT FROM webhook w WHERE w.site = r.site AND w.webhook = r.webhook AND w.open_until = 0 AND w.probe IS NULL)),
		d AS (UPDATE delivery d SET status = $8, tries = r.tries, next = NULL, job = NULL, finished = $9, attempts = r.attempts FROM r
			WHERE d.site = r.site AND d.id = r.id::uuid AND d.job = r.job RETURNING r.site, r.webhook, r.at),
		j AS (DELETE FROM river_job WHERE id = ANY(ARRAY(SELECT job FROM r)))
		UPDATE webhook w SET failures = 0, failing_since = 0, last_success = GREATEST(w.last_success, s.at), pending = w.pending - s.ended
		FROM (SELECT site, webhook, max(at) AS at, count(*) AS ended FROM d GROUP BY site, webhook) s WHERE w.site = s.site AND w.webhook = s.webhook`
	statements := &pgx.Batch{} // one transaction
	all.queueLock(statements)
	statements.Queue(set, sites, webhooks, ids, jobs, tries, attempts, ats, outbox.StatusNumber(delivery.Delivered), q.now())
	if err := q.pool.SendBatch(ctx, statements).Close(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(batch), func(r *result) bool {
		state := all[webhookKey{r.site, r.job.webhook}]
		return state != nil && !state.isOpen() && state.probe == nil
	}), nil
}
