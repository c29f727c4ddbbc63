package limits

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInflight(t *testing.T) {
	limit := NewInflight(4)
	var leave []func()
	enter := func(site string) func() error {
		return func() error {
			l, err := limit.Enter(site)
			if err == nil {
				leave = append(leave, l)
			}
			return err
		}
	}
	count, refusal := admitted(5, enter("oak"))
	if diff := cmp.Diff(&ExceededError{Policy: "requests", RetryAfter: inflightRetry}, refusal); diff != "" || count != 3 {
		t.Errorf("%d requests of one site, want three of four; refusal (-want +got):\n%s", count, diff)
	}
	count, refusal = admitted(5, enter("elm"))
	if diff := cmp.Diff(&ExceededError{Policy: "server", RetryAfter: inflightRetry}, refusal); diff != "" || count != 1 {
		t.Errorf("%d requests of another site, want the rest; refusal (-want +got):\n%s", count, diff)
	}
	leave[0]()
	leave[0]() // without effect
	if count, _ := admitted(5, enter("elm")); count != 1 {
		t.Errorf("%d requests after one has ended", count)
	}
	for _, l := range leave {
		l()
	}
	if len(limit.sites) > 0 || limit.running != 0 {
		t.Errorf("after all have ended, %d are running: %v", limit.running, limit.sites)
	}
}

func TestInflightOfSmallAndNoLimits(t *testing.T) {
	for maximum, want := range map[int]int{0: 10, 1: 1, 2: 2, 3: 3} {
		limit := NewInflight(maximum)
		count, refusal := admitted(10, func() error { _, err := limit.Enter("oak"); return err })
		if count != want {
			t.Errorf("%d of 10 requests with a limit of %d: %v", count, maximum, errors.Unwrap(refusal))
		}
	}
}

func TestInflightByWeight(t *testing.T) {
	limit := NewInflight(8)
	leave, err := limit.EnterWeighted("oak", 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := limit.EnterWeighted("oak", 2); err == nil {
		t.Error("a site has 7 of 8, want at most 6")
	}
	if _, err := limit.EnterWeighted("elm", 3); err != nil {
		t.Errorf("another site does not have the rest: %v", err)
	}
	leave()
	if _, err := limit.EnterWeighted("ash", 5); err != nil || limit.running != 8 {
		t.Errorf("%d are running, want 8: %v", limit.running, err)
	}
}
