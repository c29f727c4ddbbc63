package limits

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// admitted is how many of n requests are admitted, and the first refusal.
func admitted(n int, ask func() error) (count int, refusal *ExceededError) {
	for range n {
		if err := ask(); err == nil {
			count++
		} else if refusal == nil {
			errors.As(err, &refusal)
		}
	}
	return count, refusal
}

func TestDefaults(t *testing.T) {
	type spec = v1alpha1.Limits
	for _, test := range []struct {
		in   spec
		want Rates
	}{
		{spec{}, Rates{Rate: 5000, CallerRate: 2500, Burst: 10000, Searches: 64}},
		{spec{RequestsPerSecond: new(int32(1))}, Rates{Rate: 1, CallerRate: 1, Burst: 2, Searches: 64}},
		{
			spec{RequestsPerSecond: new(int32(8)), CallerRequestsPerSecond: new(int32(2)), Burst: new(int32(3)), ConcurrentSearches: new(int32(4))},
			Rates{Rate: 8, CallerRate: 2, Burst: 3, Searches: 4},
		},
	} {
		if diff := cmp.Diff(test.want, From(test.in)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.in, diff)
		}
	}
}

func TestAdmit(t *testing.T) {
	c := newClock()
	limiter := New(c.read)
	rates := Rates{Rate: 10, CallerRate: 4, Burst: 20}
	site := func() *SiteLimiter { return limiter.Site("oak", rates) }
	ask := func(caller string) func() error { return func() error { return site().Admit(caller) } }

	count, refusal := admitted(100, ask("greedy"))
	want := &ExceededError{Policy: "caller", Quota: 20, Window: 5 * time.Second, RetryAfter: 250 * time.Millisecond}
	if diff := cmp.Diff(want, refusal); diff != "" || count != 20 {
		t.Errorf("%d requests of a burst; refusal (-want +got):\n%s", count, diff)
	}
	// The greedy caller has emptied the bucket of the site too. What it is refused costs the site nothing.
	c.pass(time.Second)
	if count, _ := admitted(100, ask("greedy")); count != 4 {
		t.Errorf("%d requests a second later, want the caller's rate", count)
	}
	if count, refusal := admitted(100, ask("modest")); count != 6 || refusal.Policy != "site" || refusal.Quota != 20 {
		t.Errorf("%d requests of another caller (%v), want the rest of the site's rate", count, refusal)
	}
	if count, _ := admitted(5, func() error { return limiter.Site("elm", rates).Admit("greedy") }); count != 5 {
		t.Errorf("%d requests to another site", count)
	}
	rates.CallerRate, rates.Burst = 4, 3
	if count, _ := admitted(10, ask("greedy")); count != 3 {
		t.Errorf("%d requests with another burst", count)
	}
	if err := (*SiteLimiter)(nil).Admit("greedy"); err != nil {
		t.Errorf("without limits: %v", err)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	limiter, rates := New(newClock().read), From(v1alpha1.Limits{})
	for i := range 2 * maxAddresses {
		_ = limiter.Anonymous(fmt.Sprint(i))
		_ = limiter.Site(fmt.Sprint(i), rates).Admit("a")
		_ = limiter.Site("busy", rates).Admit(fmt.Sprint(i))
	}
	sites, addresses, callers := limiter.sites, limiter.addresses, limiter.Site("busy", rates).callers
	for name, got := range map[string][3]int{
		"sites":     {sites.order.Len(), len(sites.places), maxSites},
		"addresses": {addresses.order.Len(), len(addresses.places), maxAddresses},
		"callers":   {callers.order.Len(), len(callers.places), maxCallers},
	} {
		if got[0] != got[2] || got[1] != got[2] {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnonymous(t *testing.T) {
	limiter := New(newClock().read)
	count, refusal := admitted(2*addressBurst, func() error { return limiter.Anonymous("192.0.2.1") })
	if count != addressBurst || refusal.Policy != "address" {
		t.Errorf("%d requests, then %v", count, refusal)
	}
	if err := limiter.Anonymous("192.0.2.2"); err != nil {
		t.Error(err)
	}
}

func TestSearchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		var order []string
		ends := make(chan func())
		search := func(caller string) {
			end, err := g.enter(context.Background(), caller)
			if err != nil {
				t.Errorf("%s: %v", caller, err)
				return
			}
			order = append(order, caller)
			ends <- end
		}
		for _, caller := range []string{"greedy", "greedy", "greedy", "greedy", "greedy", "modest", "other"} {
			go search(caller)
			synctest.Wait()
		}
		for range 7 {
			(<-ends)()
			synctest.Wait()
		}
		want := []string{"greedy", "greedy", "greedy", "modest", "other", "greedy", "greedy"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if g.running != 0 || g.waiting != 0 || len(g.queues) != 0 || len(g.turns) != 0 || len(g.own) != 0 {
			t.Errorf("left behind: %+v", g)
		}
	})
}

func TestNoCallerHasAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(8)
		for range 8 {
			go func() { _, _ = g.enter(t.Context(), "greedy") }()
		}
		synctest.Wait()
		if g.own["greedy"] != 6 || g.waiting != 2 {
			t.Errorf("%d searches of one caller run and %d wait", g.own["greedy"], g.waiting)
		}
		for range 2 {
			if _, err := g.enter(t.Context(), "modest"); err != nil {
				t.Error(err)
			}
		}
		g.leave("modest")()
		if g.own["greedy"] != 6 {
			t.Errorf("%d searches of one caller run", g.own["greedy"])
		}
		<-time.After(maxSearchWait)
		synctest.Wait()
	})
}

func TestSearchesWaitForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		end, err := g.enter(t.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var exceeded *ExceededError
		if _, err := g.enter(t.Context(), "second"); !errors.As(err, &exceeded) || time.Since(began) != maxSearchWait {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ended, "third"); !errors.Is(err, context.Canceled) {
			t.Errorf("a request that ended: %v", err)
		}
		for i := range maxWaitersPerSlot {
			go func() { _, _ = g.enter(t.Context(), fmt.Sprint("waits ", i)) }()
		}
		synctest.Wait()
		began = time.Now()
		if _, err := g.enter(t.Context(), "one too many"); !errors.As(err, &exceeded) || time.Since(began) != 0 {
			t.Errorf("a full queue answers after %s: %v", time.Since(began), err)
		}
		<-time.After(maxSearchWait)
		synctest.Wait()
		end()
		end()
		if g.running != 0 || g.waiting != 0 || len(g.queues) != 0 {
			t.Errorf("left behind: %+v", g)
		}
	})
}
