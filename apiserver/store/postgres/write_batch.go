package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/batcher"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

const (
	// maxBatchedWrites is the maximum number of writes that share a statement and its commit. Further
	// writes wait for the next batch, which starts at once if it is full. With 16, and the next
	// batch from 8 waiting writes on, 64 clients had 0.9 of the creates per second, and 16 clients needed 1.4
	// times the database's processor time for each.
	maxBatchedWrites = 32
	// maxBatchedBody is the maximum size of the body of a batched write in bytes. A write with a larger
	// body is a statement of its own, so that other writes need not wait for it.
	maxBatchedBody = 64 << 10
	// batchLockMillis is the maximum time in milliseconds for which a batch waits for a lock. If another
	// transaction holds the lock longer, the writes of the batch are repeated alone.
	batchLockMillis = 100
)

// pendingWrite is one write of a batch. If isDone is false after the batch, the batch has changed
// nothing, and the write must be sent alone.
type pendingWrite struct {
	*edit
	// rid and updated are those of the written version, if it was written.
	rid, updated int64
	isDone       bool
	// err is errStale, the error of a statement of its own, or an error of the batch after which it
	// is unknown whether the batch was committed.
	err error
}

func (s *Store) newWriteBatcher() *batcher.Batcher[*pendingWrite] {
	return batcher.NewLimited(s.timeout, batcher.Limits{MaxBatch: maxBatchedWrites, QueueThreshold: maxBatchedWrites}, s.sendWrites)
}

// send writes an edit. If batched is true, it may share a statement with concurrent writes. It sets
// the rid and the time of the next version. Errors: errStale, and those of Write.
func (s *Store) send(ctx context.Context, e *edit, batched bool) error {
	w := &pendingWrite{edit: e}
	if batched && e.isBatchable() {
		if err := s.writes.Do(ctx, w); err != nil {
			return storeError("write record "+e.next.key.Type+"/"+e.next.key.ID, err) // w may still be in use
		}
	}
	if !w.isDone {
		s.sendWrite(ctx, w)
	}
	if errors.Is(w.err, errStale) {
		return errStale
	}
	if w.err != nil {
		return storeError("write record "+e.next.key.Type+"/"+e.next.key.ID, w.err)
	}
	e.next.rid, e.next.updated = w.rid, time.UnixMilli(w.updated).UTC()
	s.noteNewest(e.next.updated)
	return nil
}

// isBatchable reports whether a write may share a statement with other writes. Annotations, purges,
// writes with a large body, and updates of records that an earlier release wrote have statements of
// their own.
func (e *edit) isBatchable() bool {
	if e.current != nil && !e.current.isPacked && !e.current.deleted {
		return false
	}
	return (e.Action == store.ActionCreate || e.Action == store.ActionUpdate) && len(e.next.body.JSON) <= maxBatchedBody
}

// sendWrite sends a write as a statement of its own.
func (s *Store) sendWrite(ctx context.Context, w *pendingWrite) {
	w.isDone = true
	c := s.change(w.edit, s.timeTable)
	w.err = s.pool.QueryRow(ctx, c.sql, c.statement.Args...).Scan(&w.rid, &w.updated)
	if errors.Is(w.err, pgx.ErrNoRows) {
		w.err = errStale
	}
	if w.err == nil {
		s.cacheReferencePaths(c.referencePaths)
	}
}

// errWritesPanicked is the error of the writes of a batch that panicked.
var errWritesPanicked = errors.New("the batch of the write panicked")

// sendWrites runs a batch of writes. It stores the result of each write in it.
func (s *Store) sendWrites(ctx context.Context, batch []*pendingWrite) {
	if len(batch) < s.minBatch {
		// The only write has a statement that is shorter than that of a batch.
		s.sendWrite(ctx, batch[0])
		return
	}
	for _, w := range batch {
		w.isDone, w.err = true, errWritesPanicked
	}
	// All writers lock records in this order, to avoid deadlocks.
	slices.SortStableFunc(batch, func(a, b *pendingWrite) int { return cmp.Compare(a.next.self, b.next.self) })
	first := make([]*pendingWrite, 0, len(batch))
	for i, w := range batch {
		if w.err = errStale; i == 0 || w.next.self != batch[i-1].next.self { // one write of each record
			first = append(first, w)
		}
	}
	paths, err := s.writeAll(ctx, first)
	if err == nil {
		s.cacheReferencePaths(paths)
		return
	}
	// After most errors, the server has undone the statement. One write may be the cause, so each is
	// repeated alone.
	undone := isUndone(err)
	for _, w := range first {
		w.isDone, w.err = !undone, err
		if undone {
			w.err = nil
		}
	}
}

// writeAll sends the statement of a batch of writes of different records. Those that the statement
// has written get their rid and time, and no error.
func (s *Store) writeAll(ctx context.Context, batch []*pendingWrite) ([]indexrow.ReferencePath, error) {
	c := s.batchStatement(batch)
	rows, err := s.pool.Query(ctx, c.sql, c.statement.Args...)
	if err != nil {
		return nil, err
	}
	var self, rid, updated int64
	_, err = pgx.ForEachRow(rows, []any{&self, &rid, &updated}, func() error {
		i, _ := slices.BinarySearchFunc(batch, self, func(w *pendingWrite, self int64) int { return cmp.Compare(w.next.self, self) })
		batch[i].rid, batch[i].updated, batch[i].err = rid, updated, nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.referencePaths, nil
}
