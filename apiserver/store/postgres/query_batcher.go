package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store/batcher"
)

// queryBatcher sends the short queries of concurrent requests to the database in one round trip (a
// pgx.Batch). Each caller waits for the whole batch, so a query must be short. A query must also be
// read-only, because a batch is one implicit transaction, and because a query may run twice.
type queryBatcher struct {
	batches *batcher.Batcher[*batchedQuery]
	pool    *pgxpool.Pool
	site    int32
}

// querier is what queries run on: a pool, or one of its connections.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// batchedQuery is one query of a batch.
type batchedQuery struct {
	sql  string
	args []any
	rows *rowBuffer
	// complete reports whether the result was read into rows without an error. The rows may be
	// truncated.
	complete bool
	// needsWatermark reports whether watermark is to be set before the query runs. watermark remains 0
	// if that failed.
	needsWatermark bool
	watermark      int64
	// err is the error of the query if it was the only one of its batch and needed no watermark.
	err error
}

func newQueryBatcher(pool *pgxpool.Pool, site int32, timeout time.Duration) *queryBatcher {
	b := &queryBatcher{pool: pool, site: site}
	b.batches = batcher.New(timeout, b.send)
	return b
}

// query runs a query and reads its result into rows. After an error, rows must not be used, because
// the batch may still write to it.
func (b *queryBatcher) query(ctx context.Context, sql string, args []any, rows *rowBuffer) error {
	_, err := b.run(ctx, &batchedQuery{sql: sql, args: args, rows: rows})
	return err
}

// queryAfterWatermark is like query. It also returns the watermark, read before the query in the same
// round trip. The watermark is 0 if it could not be read, or if the batch failed and the query was
// run again.
func (b *queryBatcher) queryAfterWatermark(ctx context.Context, sql string, args []any, rows *rowBuffer) (watermark int64, err error) {
	return b.run(ctx, &batchedQuery{sql: sql, args: args, rows: rows, needsWatermark: true})
}

func (b *queryBatcher) run(ctx context.Context, q *batchedQuery) (watermark int64, err error) {
	if err := b.batches.Do(ctx, q); err != nil {
		return 0, err
	}
	if q.complete {
		return q.watermark, nil
	}
	if q.err != nil {
		return 0, q.err
	}
	// The batch failed, perhaps because of another query. If this query caused the error, it fails
	// again.
	q.rows.reset()
	return 0, q.runAlone(ctx, b.pool)
}

// send runs a batch of queries in one round trip. If a batch fails, the method run runs each query
// without a complete result again, alone.
func (b *queryBatcher) send(ctx context.Context, queries []*batchedQuery) {
	start := time.Now()
	needWatermark := slices.ContainsFunc(queries, func(q *batchedQuery) bool { return q.needsWatermark })
	if len(queries) == 1 && !needWatermark {
		queries[0].err = queries[0].runAlone(ctx, b.pool)
		queries[0].rows.took = time.Since(start)
		return
	}
	batch := &pgx.Batch{}
	var watermark int64
	if needWatermark {
		batch.Queue(findOpenWrites, b.site).QueryRow(func(row pgx.Row) (err error) {
			watermark, err = scanWatermark(row)
			start = time.Now()
			return err
		})
	}
	for _, q := range queries {
		batch.Queue(q.sql, q.args...).Query(func(rows pgx.Rows) error {
			err := q.read(rows)
			q.watermark = watermark
			q.rows.took = time.Since(start)
			start = time.Now() // from now on, the server runs the next query
			return err
		})
	}
	_ = b.pool.SendBatch(ctx, batch).Close() // on an error, run runs the queries without a result again
}

func (q *batchedQuery) runAlone(ctx context.Context, from querier) error {
	rows, err := from.Query(ctx, q.sql, q.args...)
	if err != nil {
		return err
	}
	return q.read(rows)
}

func (q *batchedQuery) read(rows pgx.Rows) error {
	err := q.rows.read(rows)
	q.complete = err == nil
	return err
}
