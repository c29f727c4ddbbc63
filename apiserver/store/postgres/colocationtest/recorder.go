// Package colocationtest tests that each statement of the Postgres engine stays within one site. A
// database can therefore keep the rows of each site together on one of several nodes.
package colocationtest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Recorder records the statements of the connections whose tracer it is, except those that a test sends
// itself. It is safe for concurrent use.
type Recorder struct {
	mu sync.Mutex
	// statements are the texts of the statements.
	statements map[string]struct{}
	// copied are the columns of the tables that COPY has filled, by the name of the table.
	copied map[string][]string
}

// NewRecorder returns a Recorder without statements.
func NewRecorder() *Recorder {
	return &Recorder{statements: map[string]struct{}{}, copied: map[string][]string{}}
}

// Statements returns the texts of the recorded statements, sorted.
func (r *Recorder) Statements() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.statements))
}

// Copied returns the columns of the tables that COPY has filled, by the name of the table.
func (r *Recorder) Copied() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.copied)
}

// TraceQueryStart implements pgx.QueryTracer.
func (r *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.add(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *Recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (r *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		r.add(query.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *Recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *Recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (r *Recorder) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copied[strings.Join(data.TableName, ".")] = slices.Clone(data.ColumnNames)
	return ctx
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (r *Recorder) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

func (r *Recorder) add(sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.statements[sql]; !known && !isSentByTest() {
		r.statements[sql] = struct{}{}
	}
}

// maxFrames is the maximum number of stack frames between the tracer and the caller of pgx, counted
// generously.
const maxFrames = 64

// isSentByTest reports whether a test calls pgx: the nearest caller outside of pgx and of this package is
// in a test file.
func isSentByTest() bool {
	callers := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !strings.Contains(frame.Function, "/colocationtest.") && !strings.HasPrefix(frame.Function, "github.com/jackc/pgx/") {
			return strings.HasSuffix(frame.File, "_test.go")
		}
		if !more {
			return false
		}
	}
}
