package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-health/paddock/apiserver/store/batcher"
)

// recordLoader reads single records by their selves (the hashes of type and id). It coalesces
// concurrent reads into batches, each of which is one statement.
type recordLoader struct {
	batches *batcher.Batcher[*pendingRead]
}

// recordReader reads records by their selves. Records that do not exist are missing from the
// result.
type recordReader func(ctx context.Context, hashes []int64) (map[int64]readResult, error)

// readResult is the state of a record, or the error of reading it. The zero value means that there
// is no such record.
type readResult struct {
	record *state
	err    error
}

// pendingRead is one read of a batch.
type pendingRead struct {
	hash int64
	readResult
}

func newRecordLoader(read recordReader, timeout time.Duration) *recordLoader {
	return &recordLoader{batcher.New(timeout, read.run)}
}

// errBatchPanicked is the error of all reads of a batch whose statement panicked.
var errBatchPanicked = errors.New("the batch that reads the record panicked")

// run runs a batch of reads.
func (read recordReader) run(ctx context.Context, batch []*pendingRead) {
	hashes := make([]int64, len(batch))
	for i, pending := range batch {
		hashes[i], pending.err = pending.hash, errBatchPanicked // the error remains only if read panics
	}
	results, err := read(ctx, hashes)
	for _, pending := range batch {
		pending.readResult = results[pending.hash]
		if err != nil {
			pending.readResult = readResult{err: err}
		}
	}
}

// get reads a record by its self. It returns nil if there is no such record. Errors: those of the
// database, ctx.Err() and context.DeadlineExceeded.
func (l *recordLoader) get(ctx context.Context, hash int64) (*state, error) {
	pending := &pendingRead{hash: hash}
	if err := l.batches.Do(ctx, pending); err != nil {
		return nil, err
	}
	return pending.record, pending.err
}
