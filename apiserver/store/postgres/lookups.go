package postgres

import (
	"context"
	"errors"
	"time"
)

// lookups brings reads of single records together, as one statement.
type lookups struct{ together[*lookup] }

// readsOf reads records by their hashes; those that are not there are not in the result.
type readsOf func(ctx context.Context, selves []int64) (map[int64]lookedUp, error)

// lookedUp is a record as it was read, or why it cannot be.
type lookedUp struct {
	at  *state
	err error
}

// lookup is a read of one record.
type lookup struct {
	self int64
	lookedUp
}

func newLookups(read readsOf, timeout time.Duration) *lookups {
	return &lookups{together[*lookup]{timeout: timeout, ask: read.all}}
}

// errUnfinished is what a call comes to that did not end.
var errUnfinished = errors.New("the read did not end")

// all reads the records of all lookups.
func (read readsOf) all(ctx context.Context, lookups []*lookup) {
	selves := make([]int64, len(lookups))
	for i, one := range lookups {
		selves[i], one.err = one.self, errUnfinished
	}
	records, err := read(ctx, selves)
	for _, one := range lookups {
		one.lookedUp = records[one.self]
		if err != nil {
			one.lookedUp = lookedUp{err: err}
		}
	}
}

// get reads a record by its hash; nil when there is none.
func (l *lookups) get(ctx context.Context, self int64) (*state, error) {
	own := &lookup{self: self}
	if err := l.answer(ctx, own); err != nil {
		return nil, err
	}
	return own.at, own.err
}
