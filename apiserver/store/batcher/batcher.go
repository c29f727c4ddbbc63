// Package batcher coalesces concurrent queries into batches. A round trip to a server costs
// client and server more than a short query does, so a batch of many queries costs little more than
// one query.
package batcher

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxInFlight is the maximum number of batches of a Batcher that run concurrently. Each of them
	// uses a connection. At the limit, queries stay queued.
	maxInFlight = 4
	// queueThreshold is the default of Limits.QueueThreshold. The length of the queue has no limit.
	queueThreshold = 16
	// overtakeInterval is the time between attempts of a queued query to start another batch, so that
	// one slow batch does not delay all queries.
	overtakeInterval = 5 * time.Millisecond
	// maxBatch is the default of Limits.MaxBatch.
	maxBatch = 64
)

// Batcher coalesces concurrent queries into batches. A query that arrives while a batch is in
// flight joins the next batch. A batch runs in the goroutine of a caller of Do, its leader. A
// caller becomes a leader if no batch is in flight, or if a batch ends while its query is the first in
// the queue. While fewer than maxInFlight batches are in flight, a caller also becomes a leader if the
// queue is long, or if it has waited for overtakeInterval. A Batcher is safe for concurrent use.
type Batcher[Q any] struct {
	run     func(ctx context.Context, batch []Q)
	timeout time.Duration
	limits  Limits

	mu       sync.Mutex
	inFlight int
	queue    []*waiter[Q]
}

// Limits are the limits of a Batcher that depend on what its queries cost. Fields that are 0 have
// their defaults.
type Limits struct {
	// MaxBatch is the maximum number of queries in a batch. Further queries stay queued for the next
	// batch. Default: 64.
	MaxBatch int
	// QueueThreshold is the queue length, including the arriving query, at which that query starts
	// another batch although one is in flight. Default: 16.
	QueueThreshold int
}

// waiter is one call of Do. When done is closed, either the batch with the query has ended, or
// leader is true and the waiter must run the next batch. A waiter that is a leader from the start
// has no done.
type waiter[Q any] struct {
	query  Q
	done   chan struct{}
	leader bool
}

// New returns a Batcher that calls run with 1 to 64 queries. run stores each result in its query,
// so Q is normally a pointer. run is called concurrently. The context of run has the values of the
// leader's context, but is not canceled with the context of a caller. It ends timeout after the
// batch started. If run panics, Do panics in the leader and returns nil to the other callers. So
// run must first mark all queries as having no result.
func New[Q any](timeout time.Duration, run func(ctx context.Context, batch []Q)) *Batcher[Q] {
	return NewLimited(timeout, Limits{}, run)
}

// NewLimited is like New, but applies limits instead of the defaults of Limits.
func NewLimited[Q any](timeout time.Duration, limits Limits, run func(ctx context.Context, batch []Q)) *Batcher[Q] {
	limits.MaxBatch = cmp.Or(limits.MaxBatch, maxBatch)
	limits.QueueThreshold = cmp.Or(limits.QueueThreshold, queueThreshold)
	return &Batcher[Q]{run: run, timeout: timeout, limits: limits}
}

// Do runs a query as part of a batch and returns when the batch has ended. It returns ctx.Err() if
// ctx ends earlier, and context.DeadlineExceeded if the timeout passes earlier. After an error the
// query must not be used, because its batch may still be in flight. A leader always waits for the
// end of its batch.
func (b *Batcher[Q]) Do(ctx context.Context, query Q) error {
	w := &waiter[Q]{query: query}
	if !b.leadOrEnqueue(w) {
		if err := b.wait(ctx, w); err != nil {
			return err
		}
	}
	if w.leader {
		b.runBatch(ctx, w)
	}
	return nil
}

// leadOrEnqueue makes w a leader if another batch may start, and queues it otherwise. It reports
// whether w is a leader.
func (b *Batcher[Q]) leadOrEnqueue(w *waiter[Q]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inFlight == 0 || b.inFlight < maxInFlight && len(b.queue)+1 >= b.limits.QueueThreshold {
		b.inFlight++
		w.leader = true
		return true
	}
	w.done = make(chan struct{})
	b.queue = append(b.queue, w)
	return false
}

// wait blocks until the batch of w has ended or w is a leader. Errors: those of Do.
func (b *Batcher[Q]) wait(ctx context.Context, w *waiter[Q]) error {
	deadline := time.Now().Add(b.timeout)
	overtake := time.NewTicker(overtakeInterval)
	defer overtake.Stop()
	for {
		var err error
		select {
		case <-w.done:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case now := <-overtake.C:
			if b.overtake(w) {
				return nil
			}
			if now.Before(deadline) {
				continue
			}
			err = context.DeadlineExceeded
		}
		if b.leave(w) {
			return nil // The previous batch has ended in the meantime, so the waiter must run the next one.
		}
		return err
	}
}

// overtake makes w a leader if it is queued and fewer than maxInFlight batches are in flight. It
// reports whether it did.
func (b *Batcher[Q]) overtake(w *waiter[Q]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, w)
	if i < 0 || b.inFlight == maxInFlight {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.inFlight++
	w.leader = true
	return true
}

// leave removes w from the queue. It reports whether w has become a leader.
func (b *Batcher[Q]) leave(w *waiter[Q]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = slices.DeleteFunc(b.queue, func(other *waiter[Q]) bool { return other == w })
	return w.leader
}

// runBatch runs the leader's query and up to MaxBatch-1 queued queries.
func (b *Batcher[Q]) runBatch(ctx context.Context, leader *waiter[Q]) {
	joined := b.dequeue()
	defer b.finish()
	batch := make([]Q, 1, 1+len(joined))
	batch[0] = leader.query
	for _, w := range joined {
		batch = append(batch, w.query)
	}
	// The batch may also serve other callers, so it must outlive the leader's context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timeout)
	defer cancel()
	defer func() {
		for _, w := range joined {
			close(w.done)
		}
	}()
	b.run(ctx, batch)
}

// dequeue removes up to MaxBatch-1 waiters from the queue, oldest first, and returns them.
func (b *Batcher[Q]) dequeue() []*waiter[Q] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.limits.MaxBatch-1)
	joined := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	return joined
}

// finish hands over to the next leader, if a waiter is queued, and yields to its goroutine. All queries
// of the next batch wait until that is sent, but only one caller waits for the goroutine that has sent the
// last one. Go's scheduler normally continues with the goroutine that became ready last, the next leader's.
func (b *Batcher[Q]) finish() {
	if b.handOver() {
		runtime.Gosched()
	}
}

// handOver makes the first waiter in the queue the leader of the next batch, and reports whether there
// was one. The next batch replaces the one that has ended in inFlight, which therefore changes only
// if no waiter is queued.
func (b *Batcher[Q]) handOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.inFlight--
		return false
	}
	next := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	next.leader = true
	close(next.done)
	return true
}
