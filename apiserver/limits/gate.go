package limits

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxSearchWait limits how long a search waits for a slot. At the limit it is refused.
	maxSearchWait = 2 * time.Second
	// maxWaitersPerSlot, multiplied by the slots of a Site, is the maximum number of its waiting
	// searches. One caller may have half of them. Further searches are refused.
	maxWaitersPerSlot = 4
)

// gate limits the concurrent searches of one Site to its slots. Callers with waiting searches take
// turns, so that a caller with many does not delay other callers. No caller has more than maxShare of
// the slots, because searches take long if the client reads the response slowly.
type gate struct {
	mu      sync.Mutex
	slots   int
	running int
	waiting int
	// own is the number of running searches by caller.
	own map[string]int
	// queues are the waiting searches by caller. turns are these callers in the order of their turns.
	queues map[string][]*waiter
	turns  []string
}

// waiter is a waiting search. admitted is closed when it may run.
type waiter struct{ admitted chan struct{} }

func newGate(slots int) *gate {
	return &gate{slots: slots, own: map[string]int{}, queues: map[string][]*waiter{}}
}

// Search waits until a search of a caller may run. The function that calls Search must call end after
// the search. Errors: *ExceededError, ctx.Err().
func (s *SiteLimiter) Search(ctx context.Context, caller string) (end func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	return s.searches.enter(ctx, caller)
}

func (g *gate) resize(slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots = slots
	g.admit()
}

func (g *gate) enter(ctx context.Context, caller string) (leave func(), err error) {
	g.mu.Lock()
	if g.mayRun(caller) && len(g.queues[caller]) == 0 {
		g.run(caller)
		g.mu.Unlock()
		return g.leave(caller), nil
	}
	if limit := maxWaitersPerSlot * g.slots; g.waiting >= limit || 2*len(g.queues[caller]) >= limit {
		g.mu.Unlock()
		return nil, errSearches
	}
	w := &waiter{make(chan struct{})}
	if len(g.queues[caller]) == 0 {
		g.turns = append(g.turns, caller)
	}
	g.queues[caller] = append(g.queues[caller], w)
	g.waiting++
	g.mu.Unlock()

	timer := time.NewTimer(maxSearchWait)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return g.leave(caller), nil
	case <-timer.C:
		err = errSearches
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !g.abandon(caller, w) { // w was admitted in the meantime and has a slot
		g.leave(caller)()
	}
	return nil, err
}

var errSearches = &ExceededError{Policy: "searches", RetryAfter: maxSearchWait}

// mayRun reports whether a search of a caller may run now. The caller of mayRun holds mu.
func (g *gate) mayRun(caller string) bool {
	return g.running < g.slots && g.own[caller] < maxShare(g.slots)
}

// maxShare returns how many of n places one caller, or one Site, may have: three quarters, rounded up,
// and at least 1.
func maxShare(n int) int { return max(1, n-n/4) }

func (g *gate) run(caller string) {
	g.running++
	g.own[caller]++
}

// leave returns a function that ends a search. Only its first call has an effect.
func (g *gate) leave(caller string) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
		if g.own[caller]--; g.own[caller] == 0 {
			delete(g.own, caller)
		}
		g.admit()
	})
}

// admit starts waiting searches while slots are free, one of each caller in turn. The caller holds
// mu.
func (g *gate) admit() {
	for {
		at := slices.IndexFunc(g.turns, g.mayRun)
		if at < 0 {
			return
		}
		caller := g.turns[at]
		w := g.queues[caller][0]
		g.turns = slices.Delete(g.turns, at, at+1)
		if g.queues[caller] = g.queues[caller][1:]; len(g.queues[caller]) > 0 {
			g.turns = append(g.turns, caller)
		} else {
			delete(g.queues, caller)
		}
		g.waiting--
		g.run(caller)
		close(w.admitted)
	}
}

// abandon removes a search from its queue. It reports whether the search was queued.
func (g *gate) abandon(caller string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.queues[caller], w)
	if at < 0 {
		return false
	}
	g.waiting--
	if g.queues[caller] = slices.Delete(g.queues[caller], at, at+1); len(g.queues[caller]) == 0 {
		delete(g.queues, caller)
		g.turns = slices.DeleteFunc(g.turns, func(turn string) bool { return turn == caller })
	}
	return true
}
