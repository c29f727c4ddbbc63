package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statement is an SQL statement that the engine sent, or one to send.
type statement struct {
	sql  string
	args []any
}

// statements records the statements that the engine sends, so that a benchmark can send them without
// the engine.
type statements struct {
	mu   sync.Mutex
	sent []statement
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, statement{data.SQL, slices.Clone(data.Args)})
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range data.Batch.QueuedQueries {
		s.sent = append(s.sent, statement{q.SQL, slices.Clone(q.Arguments)})
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// of returns the statements that a call sends. It fails if the call fails or sends none. Calls of it
// must not overlap.
func (s *statements) of(call func() error) ([]statement, error) {
	s.mu.Lock()
	s.sent = nil
	s.mu.Unlock()
	err := call()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && len(s.sent) == 0 {
		err = fmt.Errorf("the tracer saw no statement to Postgres during the call")
	}
	return s.sent, err
}

// send sends statements one after the other and reads their rows.
func send(ctx context.Context, pool *pgxpool.Pool, all []statement) error {
	for _, s := range all {
		rows, err := pool.Query(ctx, s.sql, s.args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			_ = rows.RawValues()
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return nil
}
