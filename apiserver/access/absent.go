package access

import (
	"context"
	"sync"
	"time"
)

// absentTime is the least time from the start of a request to its response if the Site does not exist
// or is hidden from the caller. It must exceed the time of the checks, which differ: a TokenReview for
// both, and about 150 SubjectAccessReviews for a hidden Site, eight at a time, which take 30 to 60
// ms.
const absentTime = 250 * time.Millisecond

// maxAbsentTime is the most by which slow checks of one request delay the responses to later ones. Checks
// that take longer usually fail, because kube-apiserver or an issuer cannot be reached.
const maxAbsentTime = time.Second

// slowestPeriod is how long slow checks delay the responses to later requests, and at most twice that
// long. It is long enough to compare response times in, which takes dozens of requests.
const slowestPeriod = time.Minute

// checks has the times of the checks before the calls of AwaitAbsent in this process.
var checks slowest

// AwaitAbsent delays the response to a request for a Site that does not exist or is hidden, so that
// the response time does not reveal which is the case. began is the start of the request. Checks that
// take longer than absentTime, for example because kube-apiserver is busy, delay the next responses as
// long, up to maxAbsentTime. AwaitAbsent returns early when ctx ends.
func AwaitAbsent(ctx context.Context, began time.Time) {
	now := time.Now()
	least := max(absentTime, checks.add(now, min(now.Sub(began), maxAbsentTime)))
	timer := time.NewTimer(began.Add(least).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// slowest is the longest duration of the last one to two slowestPeriods. It is safe for concurrent use.
type slowest struct {
	mu    sync.Mutex
	began time.Time // of the current period
	// current and last are the longest durations of the current period and of the period before.
	current, last time.Duration
}

// add adds a duration that ended now, and returns the longest one.
func (s *slowest) add(now time.Time, took time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch age := now.Sub(s.began); {
	case age >= 2*slowestPeriod:
		s.began, s.current, s.last = now, 0, 0
	case age >= slowestPeriod:
		s.began, s.current, s.last = now, 0, s.current
	}
	s.current = max(s.current, took)
	return max(s.current, s.last)
}
