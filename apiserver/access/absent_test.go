package access

import (
	"testing"
	"time"
)

func TestSlowest(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var s slowest
	for _, step := range []struct{ after, took, want time.Duration }{
		{0, 2, 2},
		{time.Second, 5, 5},
		{2 * time.Second, 3, 5},
		{slowestPeriod, 1, 5},                   // of the period before
		{slowestPeriod + time.Second, 7, 7},     // of the current period
		{2*slowestPeriod + time.Second, 1, 7},   // of the period before
		{3*slowestPeriod + 2*time.Second, 2, 2}, // both are past
		{3*slowestPeriod + 3*time.Second, 4, 4},
		{5*slowestPeriod + 10*time.Second, 1, 1}, // nothing was added for two periods
		{5*slowestPeriod + 11*time.Second, 0, 1},
	} {
		if got := s.add(began.Add(step.after), step.took); got != step.want {
			t.Errorf("after %s: got %d, want %d", step.after, got, step.want)
		}
	}
}

// TestAwaitAbsent checks that the response to a request follows no earlier than that to a former one
// whose checks took longer than absentTime.
func TestAwaitAbsent(t *testing.T) {
	const took = absentTime + 50*time.Millisecond
	AwaitAbsent(t.Context(), time.Now().Add(-took))
	began := time.Now()
	AwaitAbsent(t.Context(), began)
	if waited := time.Since(began); waited < took {
		t.Errorf("got a response after %s, want none before %s", waited, took)
	}
}
