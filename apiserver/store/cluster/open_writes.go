package cluster

import (
	"context"
	"sync"
	"time"
)

// openWrites are the writes of this replica to one site that may still be in progress. The start of
// the oldest one is the watermark of the replica: histories and searches by time return only
// versions from before it. So a client that polls this replica misses none of the replica's writes.
type openWrites struct {
	mu sync.Mutex
	// times maps the number of each write to the time at which it started.
	times map[int64]time.Time
	// uncertain maps the number of a failed write to the time until which it may still happen.
	uncertain map[int64]time.Time
	last      int64
	// newest is the latest update time of an acknowledged write.
	newest time.Time
}

// uncertainFor is how long a write counts as in progress after it failed with an unknown result. In
// that time, kube-apiserver may still apply it.
const uncertainFor = 5 * time.Second

// open adds a write. It must be called before the time of the new version is read from the clock.
func (o *openWrites) open(clock func() time.Time) (number int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times == nil {
		o.times, o.uncertain = map[int64]time.Time{}, map[int64]time.Time{}
	}
	o.last++
	o.times[o.last] = clock()
	return o.last
}

// close removes a write. If uncertainUntil is not zero, close marks the write as uncertain until
// that time instead. updated is the update time of the newest version of the record after the write, or
// zero if there is none or the write failed.
func (o *openWrites) close(number int64, updated time.Time, uncertainUntil time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !uncertainUntil.IsZero() {
		o.uncertain[number] = uncertainUntil
		return
	}
	delete(o.times, number)
	if updated.After(o.newest) {
		o.newest = updated
	}
}

func (o *openWrites) acknowledged() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest
}

// oldest returns the start of the oldest write in progress, or now if there is none. It removes
// uncertain writes that cannot happen any more.
func (o *openWrites) oldest(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	for number, until := range o.uncertain {
		if now.After(until) {
			delete(o.uncertain, number)
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

// maxWatermarkWait is the maximum time for which a query waits until the watermark is later than
// the newest acknowledged write. After that time the query uses the watermark as it is.
const maxWatermarkWait = 100 * time.Millisecond

// Watermark implements store.Store.
func (s *Store) Watermark(ctx context.Context) (time.Time, error) {
	return s.watermark(ctx, s.index.open.acknowledged())
}

// watermark returns the watermark: no further write of this replica will have a time before it. It
// waits until the watermark is later than own, but at most maxWatermarkWait. After that, it reads the
// watermark once more.
func (s *Store) watermark(ctx context.Context, own time.Time) (time.Time, error) {
	began := time.Now()
	for {
		isLast := time.Since(began) > maxWatermarkWait // before the read: a slow one may be from the time of the own write
		oldest := s.index.open.oldest(s.engine.clock())
		if oldest.After(own) || isLast {
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
