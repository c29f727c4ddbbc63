package deliveries

import (
	"context"
	"time"
)

// dispatch starts attempts when they are due, until ctx ends. late is the context in which their
// results are stored.
func (q *queue) dispatch(ctx, late context.Context) {
	for {
		wait := q.startDue(ctx, late)
		timer := q.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-q.wakeDispatch:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// lane identifies the deliveries of one subject to one ordered webhook. At most one of them is in
// flight.
type lane struct {
	hook    *hook
	subject string
}

// startDue starts the attempts that are due, within the limits of concurrent attempts. It returns
// the time until the next attempt is due, which is at most resyncInterval.
func (q *queue) startDue(ctx, late context.Context) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, wait := q.options.Clock.Now(), resyncInterval
	if !q.complete {
		return wait
	}
	if q.lease.isOverdue() { // this process slept, and another replica may have taken the shard
		return closedDelay
	}
	targets := map[string]Target{} // by key of the site
	for key := range q.closed {
		targets[key], wait = q.target(key), closedDelay
	}
	taken := map[lane]bool{}
	for _, e := range q.order {
		if e.done {
			continue
		}
		key := e.hook.id.key
		target, known := targets[key]
		if !known {
			target = q.target(key)
			targets[key] = target
		}
		if target == nil {
			wait = min(wait, closedDelay)
			continue
		}
		if e.subject != "" && target.Ordered(e.hook.id.webhook) {
			if taken[lane{e.hook, e.subject}] {
				continue
			}
			taken[lane{e.hook, e.subject}] = true
		}
		if e.inFlight {
			continue
		}
		due := e.next
		if open := e.hook.state.OpenUntil; open.After(due) {
			due = open
		}
		if due.After(now) {
			wait = min(wait, due.Sub(now))
			continue
		}
		if q.inFlight >= q.options.PerSite || e.hook.inFlight >= e.hook.room(q.options.PerWebhook) {
			continue // endAttempt wakes dispatch when an attempt ends
		}
		e.inFlight = true
		e.hook.inFlight++
		q.inFlight++
		q.attempts.Go(func() { q.attempt(ctx, late, e, target) })
	}
	return wait
}

// target returns the Target of the site with a key, or nil if its deliveries must wait. If the site is
// open now and was not in the last pass of syncLoop, target wakes syncLoop. The caller holds mu.
func (q *queue) target(key string) Target {
	target, open := q.options.Open(q.namespace, key)
	switch {
	case !open:
		return nil
	case q.closed[key]:
		q.expected = true
		signal(q.wakeSync)
		return nil
	default:
		return target
	}
}

// endAttempt removes an ended attempt from the numbers of attempts in progress, and wakes dispatch. The
// caller holds mu.
func (q *queue) endAttempt(e *entry) {
	e.inFlight = false
	e.hook.inFlight--
	q.inFlight--
	signal(q.wakeDispatch)
}
