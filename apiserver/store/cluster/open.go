package cluster

import (
	"context"
	"sync"
	"time"
)

// openWrites are the writes of this replica to one site that are not known to have ended.
// Pollers ask for what was written since the last time that they were told of: nothing of
// this replica is lost to them because what is shown by time ends before the oldest of these.
type openWrites struct {
	mu sync.Mutex
	// times are when writes opened, by a number of their own.
	times map[int64]time.Time
	// unsure are writes that failed and may still happen, and until when that is so.
	unsure map[int64]time.Time
	last   int64
	// newest is the latest time of a write that was acknowledged.
	newest time.Time
}

// mayHappen is how long a write that failed may still happen, and appears with the time
// that it opened at.
const mayHappen = 5 * time.Second

// open notes a write before it takes its time.
func (o *openWrites) open(clock func() time.Time) (number int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times == nil {
		o.times, o.unsure = map[int64]time.Time{}, map[int64]time.Time{}
	}
	o.last++
	o.times[o.last] = clock()
	return o.last
}

// close notes what became of a write; updated is zero where it changed nothing.
func (o *openWrites) close(number int64, updated time.Time, unsureUntil time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !unsureUntil.IsZero() {
		o.unsure[number] = unsureUntil
		return
	}
	delete(o.times, number)
	if updated.After(o.newest) {
		o.newest = updated
	}
}

// acknowledged is the latest time of a write that was acknowledged.
func (o *openWrites) acknowledged() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest
}

// oldest is when the oldest open write opened, or now.
func (o *openWrites) oldest(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	for number, until := range o.unsure {
		if now.After(until) {
			delete(o.unsure, number)
			delete(o.times, number)
		}
	}
	for _, at := range o.times {
		if at.Before(now) {
			now = at
		}
	}
	return now
}

// settleWait is how long an answer waits for open writes to end, so that it tells of
// acknowledged ones that are newer.
const settleWait = 100 * time.Millisecond

// settled is the time before which no write of this replica appears any more. It is behind
// that of an acknowledged one, unless others take too long.
func (s *Site) settled(ctx context.Context, own time.Time) (time.Time, error) {
	began := time.Now()
	for {
		oldest := s.index.open.oldest(s.engine.clock())
		if oldest.After(own) || time.Since(began) > settleWait {
			return oldest, nil
		}
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return time.Time{}, ctx.Err()
		case <-timer.C:
		}
	}
}
