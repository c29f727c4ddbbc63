package queue

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

// settler stores the outcomes of attempts and ends their jobs. One transaction does this for a batch
// of results: the ones that arrived during the previous transaction and within settleLinger.
type settler struct {
	queue *Queue
	// results has a channel for each concurrent transaction. All results of a webhook, except those of
	// probes, use the same channel, so transactions rarely wait for each other's row locks.
	results []chan *result
}

func newSettler(q *Queue) *settler {
	s := &settler{queue: q}
	for range settlerCount {
		s.results = append(s.results, make(chan *result))
	}
	return s
}

// result is the result of a job.
type result struct {
	row      *jobRow
	site     int32
	delivery string
	// job, outcome, tries and attempts are zero if there was no attempt, because the delivery does not
	// have this job any more.
	job      *job
	outcome  *delivery.Outcome
	tries    int
	attempts []byte
	// applied reports whether the outcome was stored, because the delivery still had this job.
	applied bool
	done    chan error
}

const (
	// settlerCount is the maximum number of concurrent transactions of a settler. At the limit,
	// results wait.
	settlerCount = 2
	// settleBatch is the maximum number of results that one transaction stores.
	settleBatch = 200
	// settleLinger is the time for which a result waits for further results to store in the same
	// transaction.
	settleLinger = 4 * time.Millisecond
	// settleTries is the maximum number of attempts of a transaction that conflicts with other
	// transactions. After that, the jobs of its results end with an error and are tried again.
	settleTries = 3
)

// settle stores a result and returns when it is committed. After an error, River starts the job again,
// unless the result was committed although the connection was lost.
func (s *settler) settle(ctx context.Context, r *result) error {
	r.done = make(chan error, 1)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(r.row.Queue)) // cannot fail
	select {
	case s.results[hash.Sum32()%uint32(len(s.results))] <- r:
		return <-r.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *settler) run(ctx context.Context, results chan *result) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-results:
			batch := collect(ctx, first, results)
			err := s.store(ctx, batch)
			for _, r := range batch {
				r.done <- err
			}
		}
	}
}

// collect returns a batch of the first result, of those that are waiting, and of those that arrive
// within settleLinger. After the result of a delivery in a chain, collect does not wait for further
// results, because the next delivery of the chain waits for that delivery.
func collect(ctx context.Context, first *result, results chan *result) []*result {
	batch := []*result{first}
	linger := time.NewTimer(settleLinger)
	defer linger.Stop()
	for len(batch) < settleBatch {
		if last := batch[len(batch)-1]; last.job != nil && last.job.chain != nil {
			linger.Reset(0)
		}
		select {
		case r := <-results:
			batch = append(batch, r)
		case <-linger.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

func (s *settler) store(ctx context.Context, batch []*result) error {
	if !slices.ContainsFunc(batch, func(r *result) bool { return !r.isPlainSuccess() }) {
		var left []*result
		err := retryConflicts(func() (err error) {
			left, err = s.queue.settleDelivered(ctx, batch)
			return err
		})
		if err != nil || len(left) == 0 {
			return err
		}
		batch = left
	}
	var after func()
	err := retryConflicts(func() error {
		return pgx.BeginFunc(ctx, s.queue.pool, func(tx pgx.Tx) (err error) {
			after, err = s.queue.settle(ctx, tx, batch)
			return err
		})
	})
	if err == nil {
		after()
	}
	return err
}

// retryConflicts runs a transaction up to settleTries times, until it does not conflict with another
// transaction.
func retryConflicts(transaction func() error) (err error) {
	for range settleTries {
		err = transaction()
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "40P01" && answer.Code != "40001" { // deadlock, serialization
			return err
		}
	}
	return err
}

// settle stores a batch of results in a transaction. The caller must call after when the
// transaction is committed. To avoid deadlocks, all transactions take locks in this order: chains,
// rows of webhooks, deliveries.
func (q *Queue) settle(ctx context.Context, tx pgx.Tx, batch []*result) (after func(), err error) {
	var ended []chain
	for _, r := range batch {
		r.applied = false
		if r.outcome != nil && r.job.chain != nil && r.outcome.Status != delivery.Pending {
			ended = append(ended, chain{r.site, *r.job.chain})
		}
	}
	if len(ended) > 0 {
		if _, err := lockChains(ctx, tx, ended); err != nil {
			return nil, err
		}
	}
	states, err := concerned(ctx, tx, q.numbers(), batch)
	if err != nil {
		return nil, err
	}
	statements := &pgx.Batch{}
	states.queueLock(statements)
	queueEnd(statements, batch, q.now())
	if err := tx.SendBatch(ctx, statements).Close(); err != nil {
		return nil, err
	}
	if err := q.fault("ended"); err != nil {
		return nil, err
	}
	states.apply(q.options.Breaker, batch)
	if err := q.storeStates(ctx, tx, states); err != nil {
		return nil, err
	}
	jobs, err := q.advance(ctx, tx, ended)
	if err != nil {
		return nil, err
	}
	return func() {
		q.queues.noteStates(states)
		q.wake(ctx, jobs)
	}, nil
}

// queueEnd queues the statements that store the outcomes of the deliveries that still have their
// jobs, and delete all jobs of the batch. When Work returns, River finds the job gone and does
// nothing, even if it has started the job again in the meantime.
func queueEnd(statements *pgx.Batch, batch []*result, now int64) {
	var sites []int32
	var ids []string
	var ended, jobs, finished []int64
	var nexts []*int64
	var statuses []int16
	var tries []int32
	var attempts [][]byte
	byJob := map[int64]*result{}
	for _, r := range batch {
		ended = append(ended, r.row.ID)
		if r.outcome == nil {
			continue
		}
		byJob[r.row.ID] = r
		sites, ids, jobs = append(sites, r.site), append(ids, r.delivery), append(jobs, r.row.ID)
		statuses = append(statuses, outbox.StatusNumber(r.outcome.Status))
		tries, attempts = append(tries, int32(r.tries)), append(attempts, r.attempts) //nolint:gosec // a schedule has few attempts
		if r.outcome.Status == delivery.Pending {
			next := r.outcome.Next.UnixMilli()
			nexts, finished = append(nexts, &next), append(finished, 0)
		} else {
			nexts, finished = append(nexts, nil), append(finished, now)
		}
	}
	const set = `UPDATE delivery d SET status = r.status, tries = r.tries, next = r.next, job = NULL, finished = NULLIF(r.finished, 0), attempts = r.attempts
		FROM unnest($1::int4[], $2::text[], $3::int8[], $4::int2[], $5::int4[], $6::int8[], $7::int8[], $8::bytea[]) r(site, id, job, status, tries, next, finished, attempts)
		WHERE d.site = r.site AND d.id = r.id::uuid AND d.job = r.job RETURNING r.job`
	statements.Queue(set, sites, ids, jobs, statuses, tries, nexts, finished, attempts).Query(func(rows pgx.Rows) error {
		var job int64
		_, err := pgx.ForEachRow(rows, []any{&job}, func() error {
			byJob[job].applied = true
			return nil
		})
		return err
	})
	statements.Queue(`DELETE FROM river_job WHERE id = ANY($1::int8[])`, ended)
}
