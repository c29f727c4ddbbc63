package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// question is a statement whose rows are wanted.
type question struct {
	sql  string
	args []any
	rows *fetched
	// answered tells that all rows are there, failed why they are not where nothing else was
	// asked with it.
	answered bool
	failed   error
}

// questions brings statements together that are short in any case: they go to one
// connection in one message, and their answers come back in one.
type questions struct {
	together[*question]
	pool *pgxpool.Pool
}

func newQuestions(pool *pgxpool.Pool, timeout time.Duration) *questions {
	q := &questions{together: together[*question]{timeout: timeout}, pool: pool}
	q.ask = q.askAll
	return q
}

// rowsOf asks for the rows of a statement. Where the round trip that it was part of fails,
// it is asked by itself: the error may be another's. The rows are the caller's once there
// is no error; until then they may still come.
func (q *questions) rowsOf(ctx context.Context, sql string, args []any, rows *fetched) error {
	own := &question{sql: sql, args: args, rows: rows}
	if err := q.answer(ctx, own); err != nil || own.answered {
		return err
	}
	if own.failed != nil {
		return own.failed
	}
	rows.empty()
	return own.askAlone(ctx, q.pool)
}

// askAll asks in one round trip. Questions are left without an answer when it fails.
func (q *questions) askAll(ctx context.Context, all []*question) {
	since := time.Now()
	if len(all) == 1 {
		all[0].failed = all[0].askAlone(ctx, q.pool)
		all[0].rows.took = time.Since(since)
		return
	}
	batch := &pgx.Batch{}
	for _, one := range all {
		batch.Queue(one.sql, one.args...).Query(func(rows pgx.Rows) error {
			err := one.take(rows)
			one.rows.took = time.Since(since)
			since = time.Now()
			return err
		})
	}
	_ = q.pool.SendBatch(ctx, batch).Close() // who has no answer asks by himself
}

func (one *question) askAlone(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, one.sql, one.args...)
	if err != nil {
		return err
	}
	return one.take(rows)
}

func (one *question) take(rows pgx.Rows) error {
	err := one.rows.take(rows)
	one.answered = err == nil
	return err
}
