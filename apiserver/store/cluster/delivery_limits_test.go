package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// TestDeliveriesCount shows that waiting deliveries count as pending and dead letters as kept, on
// every replica.
func TestDeliveriesCount(t *testing.T) {
	namespace, key := newSite(t)
	limits := cluster.DefaultLimits
	limits.MaxPending = 2
	site := newEngine(t, cluster.Options{}).Open(namespace, key, limits)
	var up atomic.Bool
	r := &receivers{answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		if up.Load() {
			return failed(delivery.Undelivered, time.Time{})
		}
		return failed(delivery.Pending, time.Now().Add(50*time.Millisecond))
	}}
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a", "b"))
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r})
	until(t, "events in records", 0, func() int { return len(pending(t, namespace)) })
	full := store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries, Max: 2}
	n := 1
	write := func(webhooks ...string) store.LimitError {
		t.Helper()
		n++ // the site counts a delivery late, so it may accept an event that it should refuse
		_, err := site.Write(t.Context(), []store.Op{to(rex(n), fmt.Sprint("e", n), "Patient/rex", webhooks...)})
		var limit *store.LimitError
		if errors.As(err, &limit) {
			return *limit
		}
		if err != nil {
			return store.LimitError{What: err.Error()}
		}
		return store.LimitError{}
	}
	until(t, "refusal", full, func() store.LimitError { return write("a") })
	up.Store(true)
	kept := store.LimitError{Scope: store.LimitSite, What: store.KeptDeliveries, Max: 20}
	for range 9 { // 20 are kept then
		until(t, "written", true, func() bool {
			limit := write("a", "b")
			return limit == store.LimitError{} || limit == kept
		})
	}
	until(t, "refusal", kept, func() store.LimitError { return write("a") })
}

// TestRemoveEventsMeetsWriter shows that a new event keeps its sequence if it is written while an
// earlier one is removed from the Record.
func TestRemoveEventsMeetsWriter(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	var once sync.Once
	var accepted int64
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/records/") {
				once.Do(func() {
					mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
					events := pending(t, namespace)["Patient/rex"]
					accepted = events[len(events)-1].Sequence
				})
			}
			return next.RoundTrip(r)
		}}
	})
	r := &receivers{}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	until(t, "received", []string{"e1", "e2"}, func() []string { return r.received("a") })
	if got := r.got["a"][1].Sequence; got != accepted {
		t.Errorf("e2 was accepted with sequence %d and delivered with %d", accepted, got)
	}
}

// TestDeliveredBefore shows that a delivered event is not delivered again if it is still in a
// Record.
func TestDeliveredBefore(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{}
	sites := map[string]*receivers{namespace: r}
	stop := deliverTo(t, control.Config(), namespace, sites)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	until(t, "received", []string{"e1"}, func() []string { return r.received("a") })
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	stop()
	mustWrite(t, site, to(rex(2), "e1", "Patient/rex", "a"))
	mustWrite(t, site, to(rex(3), "e2", "Patient/rex", "a"))
	deliverTo(t, control.Config(), newNamespace(t), sites)
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if got := len(r.got["a"]); got != 2 {
		t.Errorf("%d deliveries of two events", got)
	}
}

// TestBreakerOutlastsProcess shows that no process makes an attempt while a breaker is open, and
// only one when it half-opens.
func TestBreakerOutlastsProcess(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Millisecond))
	var up atomic.Bool
	var attempts atomic.Int64
	r := &breaking{clock: clock, receivers: receivers{answer: func(webhook string, _ store.AcceptedEvent, before int) delivery.Outcome {
		if webhook == "b" && before == 0 {
			later := failed(delivery.Pending, clock.Now().Add(time.Minute))
			later.Attempt.Reason = delivery.ReasonThrottled
			return later
		}
		if webhook == "b" {
			return delivered()
		}
		attempts.Add(1)
		if up.Load() {
			return delivered()
		}
		return failed(delivery.Pending, clock.Now())
	}}}
	start := func(leases string) func() {
		return deliverTo(t, control.Config(), leases, nil, func(o *deliveries.Options) {
			o.Clock, o.Open = clock, func(in, _ string) (deliveries.Target, bool) { return r, in == namespace }
		})
	}
	mustWrite(t, site, to(rex(0), "e0", "Patient/rex", "a", "b"))
	stop := start(namespace)
	until(t, "attempts", 1, attempts.Load)
	for n := range 5 {
		mustWrite(t, site, to(rex(n+1), fmt.Sprint("e", n+1), "Patient/rex", "a"))
	}
	until(t, "events in records", 0, func() int { return len(pending(t, namespace)) })
	log := site.Deliveries()
	until(t, "failing", true, func() bool {
		health, _ := log.Health(t.Context())
		return health["a"].Pending == 6 && health["b"].Pending == 1 && !health["a"].FailingSince.IsZero()
	})
	stop()
	clock.Step(time.Minute)
	start(newNamespace(t)) // b shows that it works
	until(t, "received by b", []string{"e0"}, func() []string { return r.received("b") })
	stays := func(want int64) {
		t.Helper()
		until(t, "attempts", want, attempts.Load)
		gomega.NewWithT(t).Consistently(attempts.Load, 500*time.Millisecond, 20*time.Millisecond).Should(gomega.Equal(want), "attempts while the breaker is open")
	}
	stays(1)
	clock.Step(time.Hour)
	stays(2)
	up.Store(true)
	clock.Step(time.Hour)
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	health, err := log.Health(t.Context())
	if err != nil || !health["a"].FailingSince.IsZero() {
		t.Errorf("health %+v, error %v", health, err)
	}
}

// breaking are receivers with a breaker that opens for an hour at the first failure, unless the
// receiver throttles.
type breaking struct {
	receivers
	clock *clocktesting.FakeClock
}

// After implements deliveries.Target.
func (b *breaking) After(state delivery.State, a delivery.Attempt) delivery.State {
	state = b.receivers.After(state, a)
	if a.Reason != delivery.ReasonDelivered && a.Reason != delivery.ReasonThrottled {
		state.OpenUntil = b.clock.Now().Add(time.Hour)
	}
	return state
}

// TestTrim shows which posted events and dead letters are removed, and when.
func TestTrim(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		return failed(delivery.Failed, time.Time{})
	}}
	sites := map[string]*receivers{namespace: r}
	const posted = 100 // as many as are relayed before a trim
	post := func(from int, targets ...string) {
		var group sync.WaitGroup
		for w := range 10 {
			group.Go(func() {
				for i := range posted / 10 {
					op := to(rex(i), fmt.Sprint("e", from+w*10+i), "")
					if i == 0 && w == 0 {
						op = to(rex(i), fmt.Sprint("e", from), "", targets...)
					}
					op.Key = store.Key{Type: deliveries.EventType, ID: fmt.Sprint("e", from+w*10+i)}
					mustWrite(t, site, op)
				}
			})
		}
		group.Wait()
	}
	left := func() (records int, given int64) {
		_, given, err := site.Deliveries().Deliveries(t.Context(), delivery.Query{Webhook: "a", Count: 1})
		page, searchErr := site.Search(t.Context(), store.Query{Types: []string{deliveries.EventType}, Count: 1, Total: store.TotalAccurate})
		if err != nil || searchErr != nil {
			t.Fatal(err, searchErr)
		}
		return int(page.Total), given
	}
	mustWrite(t, site, rex(1))
	config := control.Config()
	var read atomic.Int32 // how often the Record of the Patient was read
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && strings.Contains(r.URL.Query().Get("fieldSelector"), "spec.hasEvents!=true") {
				var body []byte
				body, err = io.ReadAll(response.Body)
				read.Add(int32(bytes.Count(body, []byte(`"name":"patient.`))))
				response.Body = io.NopCloser(bytes.NewReader(body))
			}
			return response, err
		}}
	})
	post(0, "a")
	stop := deliverTo(t, config, namespace, sites)
	until(t, "events in records", 0, func() int { return len(pending(t, namespace)) })
	until(t, "given up", 1, func() int64 { _, given := left(); return given })
	if records, _ := left(); records != posted {
		t.Errorf("%d records of events, want all", records)
	}
	stop()
	for _, age := range []time.Duration{6 * 24 * time.Hour, 8 * 24 * time.Hour} {
		before, _ := left()
		post(before + int(age.Hours())*1000)
		clock := clocktesting.NewFakeClock(time.Now().Add(age))
		stop := deliverTo(t, config, newNamespace(t), sites, func(o *deliveries.Options) { o.Clock = clock })
		until(t, "records of events", 0, func() int { records, _ := left(); return records })
		stop()
		_, given := left()
		if want := map[bool]int64{true: 1, false: 0}[age < 7*24*time.Hour]; given != want {
			t.Errorf("%d given up are kept after %s, want %d", given, age, want)
		}
	}
	if n := read.Load(); n > 0 {
		t.Errorf("trims read the Patient %d times", n)
	}
}
