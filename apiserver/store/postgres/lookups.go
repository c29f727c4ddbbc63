package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// mostReading is how many connections read records by id at a time: one, and another
	// whenever those under way have kept somebody waiting for longer than patientFor. A
	// round trip costs both sides more than the record it brings.
	mostReading = 4
	patientFor  = 5 * time.Millisecond
	// mostTogether is how many records are read at once.
	mostTogether = 64
)

// lookups brings reads of single records together.
type lookups struct {
	// read reads records by their hashes; those that are not there are not in the result.
	read    func(ctx context.Context, selves []int64) (map[int64]lookedUp, error)
	timeout time.Duration

	mu      sync.Mutex
	reading int
	waiting []*lookup
}

// lookedUp is a record as it was read, or why it cannot be.
type lookedUp struct {
	at  *state
	err error
}

// lookup is a read of one record. Who is woken has the record, or the lead: it reads its
// own and what has come to wait.
type lookup struct {
	self  int64
	woken chan struct{}
	leads bool
	lookedUp
}

// get reads a record by its hash; nil when there is none.
func (l *lookups) get(ctx context.Context, self int64) (*state, error) {
	own := &lookup{self: self, woken: make(chan struct{})}
	if !l.start(own) {
		if err := l.wait(ctx, own); err != nil {
			return nil, err
		}
	}
	if own.leads {
		l.lead(ctx, own)
	}
	return own.at, own.err
}

// start takes the lead if nobody reads, else a place among those who wait.
func (l *lookups) start(own *lookup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading == 0 {
		l.reading, own.leads = 1, true
		return true
	}
	l.waiting = append(l.waiting, own)
	return false
}

// wait waits for the record or the lead.
func (l *lookups) wait(ctx context.Context, own *lookup) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	for {
		select {
		case <-own.woken:
			return nil
		case <-time.After(patientFor):
			if l.overtake(own) {
				return nil
			}
		case <-ctx.Done():
			// The lead may have come meanwhile: who has it reads for the others.
			if !l.leave(own) {
				return ctx.Err()
			}
			return nil
		}
	}
}

// overtake takes the lead of another read if there may be one more.
func (l *lookups) overtake(own *lookup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting, own)
	if at < 0 || l.reading == mostReading {
		return false
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.reading++
	own.leads = true
	return true
}

// leave gives a place up. It returns whether the lead has come to it meanwhile.
func (l *lookups) leave(own *lookup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(other *lookup) bool { return other == own })
	return own.leads
}

// lead reads the records of all who wait, its own first, and hands the lead on.
func (l *lookups) lead(ctx context.Context, own *lookup) {
	together := append([]*lookup{own}, l.join()...)
	defer l.handOn()
	selves := make([]int64, len(together))
	for i, one := range together {
		selves[i] = one.self
	}
	// That one caller goes away is nothing to the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	records, err := map[int64]lookedUp(nil), errors.New("the read did not end")
	defer func() {
		for _, one := range together {
			one.lookedUp = records[one.self]
			if err != nil {
				one.lookedUp = lookedUp{err: err}
			}
			if one != own {
				close(one.woken)
			}
		}
	}()
	records, err = l.read(ctx, selves)
}

// join takes those who wait, as far as they can be read at once.
func (l *lookups) join() []*lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), mostTogether-1)
	joined := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return joined
}

// handOn gives the lead to the first who waits, or the connection back.
func (l *lookups) handOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.reading--
		return
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	next.leads = true
	close(next.woken)
}
