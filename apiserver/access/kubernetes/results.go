package kubernetes

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// rightsTTL is how long a right, or its lack, is cached if the objects of RBAC are not watched, or
	// if they changed less than rightsTTL before the review: kube-apiserver also watches these
	// objects, and may see a change later than this process.
	rightsTTL = 10 * time.Second
	// watchedRightsTTL is how long a right, or its lack, is cached while the objects of RBAC are watched
	// and do not change. The time is limited because another authorizer of the cluster may have
	// granted the right. kube-apiserver caches the decisions of authorization webhooks for the same
	// time by default.
	watchedRightsTTL = 5 * time.Minute
	// answerTTL is how long the watches count as working after a watch has failed. They also stop
	// counting as working this long after the last review with an answer, because a connection that
	// was cut may look open.
	answerTTL = time.Minute
	// maxRenewals is the maximum number of concurrent reviews that renew cached results.
	maxRenewals = 8
)

// result is a cached result of a review of rights.
type result struct {
	allowed bool
	// reviewed is when the review began.
	reviewed time.Time
	renewal
}

// renewal is the state of a cached result that a request may renew in the background.
type renewal struct{ running atomic.Bool }

// isCurrent reports whether a result for a namespace still counts. A result of a review before the
// last change of the objects of RBAC does not count. Any other result counts for ttl, or for
// watchedTTL while these objects are watched. It counts for at most rightsTTL if the objects
// changed less than rightsTTL before the review.
func (a *Access) isCurrent(namespace string, reviewed time.Time, ttl, watchedTTL time.Duration) bool {
	now := a.now()
	changed, isWatched := a.rbac.last(namespace)
	if !reviewed.After(changed) {
		return false
	}
	switch {
	case reviewed.Sub(changed) < rightsTTL:
		ttl = min(ttl, rightsTTL)
	case isWatched && now.UnixNano()-a.answered.Load() < int64(answerTTL):
		ttl = watchedTTL
	}
	return now.Sub(reviewed) < ttl
}

// renew reviews a result again in the background, unless a review of this result is running or
// maxRenewals reviews of other results are.
func (a *Access) renew(ctx context.Context, r *renewal, review func(ctx context.Context)) {
	if !r.running.CompareAndSwap(false, true) {
		return
	}
	select {
	case a.renewals <- struct{}{}:
	default:
		r.running.Store(false)
		return
	}
	ctx = context.WithoutCancel(ctx) // the review continues after the request
	go func() {
		defer func() { <-a.renewals; r.running.Store(false) }()
		review(ctx)
	}()
}
