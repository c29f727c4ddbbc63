package queue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/paddock-health/paddock/apiserver/store/batcher"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

const (
	// loadTimeout is the time limit of reading deliveries. After that, their jobs end with an error
	// and are tried again.
	loadTimeout = 10 * time.Second
	// loadBatch is the maximum number of deliveries that one statement reads.
	loadBatch = 128
)

// load is the request for the delivery of a job. job is valid if err is nil.
type load struct {
	row *river.Job[attempt]
	job *job
	err error
}

// loader reads the deliveries of jobs whose attempts are about to begin. Several jobs share a statement.
type loader struct {
	queue   *Queue
	batches *batcher.Batcher[*load]
}

func newLoader(q *Queue) *loader {
	l := &loader{queue: q}
	l.batches = batcher.NewLimited(loadTimeout, batcher.Limits{MaxBatch: loadBatch, QueueThreshold: loadBatch}, l.run)
	return l
}

// load reads the delivery of a job. Errors: pgx.ErrNoRows if the delivery does not have this job
// any more.
func (l *loader) load(ctx context.Context, row *river.Job[attempt]) (*job, error) {
	request := &load{row: row}
	if err := l.batches.Do(ctx, request); err != nil {
		return nil, err
	}
	return request.job, request.err
}

// run reads the deliveries of a batch in one statement.
func (l *loader) run(ctx context.Context, batch []*load) {
	sites, ids, jobs := make([]int32, len(batch)), make([]string, len(batch)), make([]int64, len(batch))
	for i, request := range batch {
		sites[i], ids[i], jobs[i] = request.row.Args.Site, request.row.Args.Delivery, request.row.ID
	}
	// OFFSET 0 prevents a scan of the site's events, which Postgres chooses if it estimates the
	// tables to be empty.
	const find = `SELECT r.n, d.webhook, d.tries, d.attempts, d.chain, e.seq, e.at, e.event, e.envelope
		FROM unnest($1::int4[], $2::text[], $3::int8[]) WITH ORDINALITY r(site, id, job, n)
		CROSS JOIN LATERAL (SELECT * FROM delivery WHERE site = r.site AND id = r.id::uuid OFFSET 0) d
		CROSS JOIN LATERAL (SELECT * FROM event WHERE site = r.site AND seq = d.seq OFFSET 0) e WHERE d.job = r.job AND d.status = 0`
	rows, err := l.queue.pool.Query(ctx, find, sites, ids, jobs)
	if err == nil {
		var n, seq, at int64
		var found job
		var packed, envelope []byte
		scan := []any{&n, &found.webhook, &found.tries, &found.attempts, &found.chain, &seq, &at, &packed, &envelope}
		_, err = pgx.ForEachRow(rows, scan, func() error {
			request, loaded := batch[n-1], found
			loaded.event, request.err = outbox.UnpackHead(seq, at, packed)
			loaded.event.Envelope, request.job = envelope, &loaded
			return nil
		})
	}
	for _, request := range batch {
		switch {
		case err != nil:
			request.err = err
		case request.job == nil && request.err == nil:
			request.err = pgx.ErrNoRows
		}
	}
}
