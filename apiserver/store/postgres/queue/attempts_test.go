package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAttempts counts the attempts that a webhook may have at the same time.
func TestAttempts(t *testing.T) { synctest.Test(t, testAttempts) }

func testAttempts(t *testing.T) {
	const queue = "w"
	q := newQueues(nil, Options{Workers: 8})
	var running []*attempts
	begin := func() {
		t.Helper()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			of, err := q.begin(ctx, queue)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				return
			}
			running = append(running, of)
		}
	}
	end := func(change int) {
		for _, of := range running {
			q.end(queue, of, change)
		}
		running = nil
	}
	for _, step := range []struct {
		change, want int
	}{{succeeded, 2}, {succeeded, 4}, {succeeded, 8}, {0, 8}, {failed, 8}, {failed, 2}, {succeeded, 2}, {failed, 4}, {0, 2}, {succeeded, 2}} {
		begin()
		if len(running) != step.want {
			t.Fatalf("%d concurrent attempts, want %d", len(running), step.want)
		}
		end(step.change)
	}
	if q.attempts[queue].running != 0 {
		t.Errorf("%d attempts run after their end", q.attempts[queue].running)
	}
}
