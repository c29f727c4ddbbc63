package access

import (
	"context"
	"time"
)

// absentTime is the time from the start of a request to its response if the Site does not exist or
// is hidden from the caller. It must exceed the time of the checks, which differ: a TokenReview for
// both, and about 150 SubjectAccessReviews for a hidden Site, eight at a time, which take 30 to 60
// ms.
const absentTime = 250 * time.Millisecond

// AwaitAbsent delays the response to a request for a Site that does not exist or is hidden, so that
// the response time does not reveal which is the case. began is the start of the request. AwaitAbsent
// returns early when ctx ends.
func AwaitAbsent(ctx context.Context, began time.Time) {
	timer := time.NewTimer(time.Until(began.Add(absentTime)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
