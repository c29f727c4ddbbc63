package queue

import (
	"context"
	"time"
)

// firstAttempts is the number of concurrent attempts to a webhook that has not succeeded yet. With
// more, new receivers that do not answer would occupy connections and processor time until their
// breakers open, and delay deliveries to other receivers.
const firstAttempts = 2

// attempts limits the concurrent attempts of this process to one webhook, as TCP's slow start does: a
// success raises the limit by one, up to the workers of the queue, and a failure lowers it by one,
// down to firstAttempts.
type attempts struct {
	// slots has an element for each attempt that may begin now.
	slots chan struct{}
	// limit is the number of free and taken slots.
	limit int
	// running is the number of attempts that have begun or wait for a slot.
	running int
}

// begin waits for a slot of a queue's webhook. Unless it returns an error, the caller must call end.
// Errors: ctx.Err().
func (q *queues) begin(ctx context.Context, queue string) (*attempts, error) {
	of := q.join(queue)
	select {
	case <-of.slots:
		return of, nil
	case <-ctx.Done():
		q.leave(queue, of)
		return nil, ctx.Err()
	}
}

func (q *queues) join(queue string) *attempts {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.attempts[queue]
	if of == nil {
		of = &attempts{slots: make(chan struct{}, q.workers), limit: min(firstAttempts, q.workers)}
		for range of.limit {
			of.slots <- struct{}{}
		}
		q.attempts[queue] = of
	}
	of.running++
	return of
}

// The values of change in end. If there was no attempt, change is 0 and the limit stays.
const (
	succeeded = 1
	failed    = -1
)

// end returns a slot and changes the limit.
func (q *queues) end(queue string, of *attempts, change int) {
	q.leave(queue, of)
	q.mu.Lock()
	defer q.mu.Unlock()
	if change == failed && of.limit > firstAttempts {
		of.limit--
		return
	}
	of.slots <- struct{}{}
	if change == succeeded && of.limit < q.workers {
		of.limit++
		of.slots <- struct{}{}
	}
}

func (q *queues) leave(queue string, of *attempts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of.running--
	if _, there := q.used[queue]; there {
		q.used[queue], q.worked[queue] = time.Now(), time.Now()
	}
}
