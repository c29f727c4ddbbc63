package cluster

import (
	"context"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// queryBudget ends a query at its deadline, because writers wait for the read lock that the query
// holds. It counts the steps of the query, each of which is a record or a value that the query visits,
// to check the clock only sometimes.
type queryBudget struct {
	ctx      context.Context
	deadline time.Time
	// steps is the number of steps. The clock is checked when it reaches nextCheck.
	steps, nextCheck int
	over             bool
}

// stepsPerCheck is the number of steps between checks of the clock.
const stepsPerCheck = 1024

func newQueryBudget(ctx context.Context, timeout time.Duration) *queryBudget {
	return &queryBudget{ctx: ctx, deadline: time.Now().Add(timeout), nextCheck: stepsPerCheck}
}

// exceeded counts a step and reports whether the query must end.
func (w *queryBudget) exceeded() bool { return w.exceededBy(1) }

// exceededBy is exceeded for n steps at once.
func (w *queryBudget) exceededBy(n int) bool {
	if w.steps += n; w.steps >= w.nextCheck && !w.over {
		w.nextCheck = w.steps + stepsPerCheck
		w.over = w.ctx.Err() != nil || time.Now().After(w.deadline)
	}
	return w.over
}

// err returns the reason why exceeded has ended the query, or nil if it has not. Errors:
// store.ErrQueryTimeout, the error of the context.
func (w *queryBudget) err() error {
	switch {
	case !w.over:
		return nil
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	default:
		return store.ErrQueryTimeout
	}
}
