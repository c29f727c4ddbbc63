package cluster

import (
	"context"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// work counts the steps of a query and ends it when it takes too long: it keeps
// others from writing.
type work struct {
	ctx      context.Context
	deadline time.Time
	steps    int
	over     bool
}

// stepsPerLook is how many steps are taken between looks at the clock.
const stepsPerLook = 1024

func newWork(ctx context.Context, timeout time.Duration) *work {
	return &work{ctx: ctx, deadline: time.Now().Add(timeout)}
}

// done counts a step and reports whether the query must end.
func (w *work) done() bool {
	if w.steps++; w.steps >= stepsPerLook && !w.over {
		w.steps = 0
		w.over = w.ctx.Err() != nil || time.Now().After(w.deadline)
	}
	return w.over
}

// err says that the query was ended, if it was.
func (w *work) err() error {
	switch {
	case !w.over:
		return nil
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	default:
		return store.ErrQueryTimeout
	}
}
