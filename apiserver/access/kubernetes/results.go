package kubernetes

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// rightsTTL is how long a right, or its lack, is cached if the objects of RBAC are not watched, or
	// if they changed less than rightsTTL before the review: kube-apiserver watches them too, and may
	// learn of a change later than this process.
	rightsTTL = 10 * time.Second
	// watchedRightsTTL is how long a right, or its lack, is cached while the objects of RBAC are watched
	// and do not change. Another authorizer of the cluster may have granted the right, so it is limited:
	// kube-apiserver caches the decisions of webhooks that long by default.
	watchedRightsTTL = 5 * time.Minute
	// answerTTL is how long the watches count as working after one has failed, and after the last review
	// that had an answer: a connection that was cut may look open.
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

// isCurrent reports whether a result for a namespace still counts. The result counts for ttl, and for
// watchedTTL while the objects of RBAC are watched, but not after a change of them.
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

// renew reviews a result again in the background, unless that is done already or too many others are.
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
	ctx = context.WithoutCancel(ctx) // the request does not wait for it
	go func() {
		defer func() { <-a.renewals; r.running.Store(false) }()
		review(ctx)
	}()
}
