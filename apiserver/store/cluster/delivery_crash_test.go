package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// mortal is the connection of a process that stops at a write. After that, no request passes.
type mortal struct {
	// dieAt is the write at which it stops, counted from 1. after reports whether that write still
	// happens.
	dieAt int64
	after bool

	writes atomic.Int64
	dead   atomic.Bool
}

var errDead = errors.New("the process is dead")

func (m *mortal) config() *rest.Config {
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if m.dead.Load() {
				return nil, errDead
			}
			if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases") || m.writes.Add(1) != m.dieAt {
				return next.RoundTrip(r)
			}
			if m.after {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
			}
			m.dead.Store(true)
			return nil, errDead
		}}
	})
	return config
}

// TestDeliveryCrashes stops the delivery process before and after each of its writes. The next
// process must deliver every event and leave no object.
func TestDeliveryCrashes(t *testing.T) {
	engine := newEngine(t, cluster.Options{})
	var survived atomic.Int64
	var group errgroup.Group
	group.SetLimit(6)
	for at := int64(1); at <= 10; at++ {
		for _, after := range []bool{false, true} {
			group.Go(func() error {
				if !crashDelivery(t, engine, &mortal{dieAt: at, after: after}) {
					survived.Add(1)
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	for at := int64(11); survived.Load() == 0 && at <= 30; at++ { // a slow process writes its log more often
		if !crashDelivery(t, engine, &mortal{dieAt: at}) {
			survived.Add(1)
		}
	}
	if survived.Load() == 0 {
		t.Error("the process has more writes than were tried")
	}
}

// newNamespace returns a namespace for Leases.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, _ := newSite(t)
	return namespace
}

// crashDelivery reports whether the process reached the write at which it stops.
func crashDelivery(t *testing.T, engine *cluster.Cluster, m *mortal) bool {
	namespace, key := newSite(t)
	site := engine.Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	mustWrite(t, site, to(store.Op{Kind: store.Purge, Key: rex(0).Key}, "e2", "Patient/rex", "a"))
	r := &receivers{}
	sites := map[string]*receivers{namespace: r}
	stop := deliverTo(t, m.config(), namespace, sites)
	until(t, "the process works", true, func() bool { return m.dead.Load() || len(objectsLeft(t, namespace)) == 0 })
	stop()
	died := m.dead.Load()
	if died && m.writes.Load() < 2 {
		mustWrite(t, site, to(rex(2), "e3", "Patient/rex", "a")) // over what is left of the purged one
		mustWrite(t, site, to(store.Op{Kind: store.Purge, Key: rex(0).Key}, "e4", "Patient/rex", "a"))
	}
	stop = deliverTo(t, control.Config(), newNamespace(t), sites)
	defer stop()
	step := fmt.Sprintf("death at write %d, after it: %v", m.dieAt, m.after)
	until(t, step, []string{}, func() []string { return objectsLeft(t, namespace) })
	want := []string{"e1", "e2"}
	if died && m.writes.Load() < 2 {
		want = append(want, "e3", "e4")
	}
	if diff := cmp.Diff(want, r.received("a"), sorted); diff != "" {
		t.Errorf("%s: delivered (-want +got):\n%s", step, diff)
	}
	return died
}

// TestDeliveryTakeover stops one of two replicas that share the work. The other one takes over.
func TestDeliveryTakeover(t *testing.T) {
	engine := newEngine(t, cluster.Options{})
	leases := newNamespace(t)
	const sites = 6
	targets, stores := map[string]*receivers{}, map[string]store.Store{}
	for range sites {
		namespace, key := newSite(t)
		targets[namespace] = &receivers{}
		stores[namespace] = engine.Open(namespace, key, cluster.DefaultLimits)
	}
	shards := func(o *deliveries.Options) { o.Shards, o.LeaseDuration = 4, 2*time.Second }
	m := &mortal{}
	first := map[string]*receivers{}
	for namespace := range targets {
		first[namespace] = &receivers{}
	}
	deliverTo(t, m.config(), leases, first, shards)
	deliverTo(t, control.Config(), leases, targets, shards)
	write := func(n int) {
		for _, s := range stores {
			mustWrite(t, s, to(rex(n), fmt.Sprint("e", n), "Patient/rex", "a"))
		}
	}
	left := func() (found []string) {
		for namespace := range stores {
			found = append(found, objectsLeft(t, namespace)...)
		}
		return found
	}
	write(1)
	until(t, "left", nil, left)
	m.dead.Store(true)
	write(2)
	write(3)
	until(t, "left after one replica died", nil, left)
	for namespace, r := range targets {
		all := map[string]bool{}
		for _, id := range append(r.received("a"), first[namespace].received("a")...) {
			all[id] = true
		}
		if len(all) != 3 {
			t.Errorf("site %s: delivered %v", namespace, all)
		}
	}
}

// TestDeliveryOrder shows that a webhook receives the events of a subject in order, with concurrent
// writers and failing receivers. A delivery that waits does not block other subjects.
func TestDeliveryOrder(t *testing.T) {
	namespace, key := newSite(t)
	engine := newEngine(t, cluster.Options{})
	var stuck atomic.Bool
	stuck.Store(true)
	r := &receivers{ordered: []string{"a"}, answer: func(webhook string, e store.AcceptedEvent, attempts int) delivery.Outcome {
		if e.Subject == "Patient/stuck" && stuck.Load() || len(e.ID)%2 == attempts%2 && attempts < 2 {
			return failed(delivery.Pending, time.Now().Add(20*time.Millisecond))
		}
		return delivered()
	}}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r})
	var group sync.WaitGroup
	const writers, each = 4, 5
	for w := range writers {
		site := engine.Open(namespace, key, cluster.DefaultLimits)
		group.Go(func() {
			for i := range each {
				op := rex(100*w + i)
				op.Events = func(c store.Change) []store.Event {
					e, posted := event(fmt.Sprint("v", c.After.Version), "Patient/rex"), event(fmt.Sprint("s", c.After.Version), "Patient/stuck")
					e.Targets, posted.Targets = []string{"a"}, []string{"a"}
					return []store.Event{posted, e}
				}
				if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	group.Wait()
	want := map[string][]string{}
	for v := 1; v <= writers*each; v++ {
		want["v"], want["s"] = append(want["v"], fmt.Sprint("v", v)), append(want["s"], fmt.Sprint("s", v))
	}
	of := func(subject string) func() []string {
		return func() (found []string) {
			for _, id := range r.received("a") {
				if strings.HasPrefix(id, subject) {
					found = append(found, id)
				}
			}
			return found
		}
	}
	until(t, "events of a subject", want["v"], of("v"))
	until(t, "events of the subject that fails", nil, of("s"))
	stuck.Store(false)
	until(t, "events of the subject that failed", want["s"], of("s"))
}

// TestDeliveryOrderAfterTakeover shows that a process that takes over a pending WebhookDelivery sends it
// before the later events of its subject, even if it learns of the WebhookDelivery later.
func TestDeliveryOrderAfterTakeover(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	var up atomic.Bool
	r := &receivers{ordered: []string{"a"}, answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		if !up.Load() {
			return failed(delivery.Pending, time.Now().Add(100*time.Millisecond))
		}
		return delivered()
	}}
	sites := map[string]*receivers{namespace: r}
	stop := deliverTo(t, control.Config(), namespace, sites)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	until(t, "left", []string{"e1 to a: Pending"}, func() []string { return objectsLeft(t, namespace) })
	stop()
	mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
	up.Store(true)
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/webhookdeliveries") {
				time.Sleep(time.Second)
			}
			return next.RoundTrip(r)
		}}
	})
	deliverTo(t, config, newNamespace(t), sites)
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if diff := cmp.Diff([]string{"e1", "e2"}, r.received("a")); diff != "" {
		t.Errorf("order of arrival (-want +got):\n%s", diff)
	}
}

// TestEventsAreWatched shows that new events are taken from the watch: kube-apiserver passes over all Records of a
// namespace for each list of those with events.
func TestEventsAreWatched(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	var lists atomic.Int32
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/namespaces/"+namespace+"/records") && r.URL.Query().Get("fieldSelector") == "spec.hasEvents=true" {
				lists.Add(1)
			}
			return next.RoundTrip(r)
		}}
	})
	r := &receivers{}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	var want []string
	for n := range 30 {
		id := fmt.Sprint("e", n)
		want = append(want, id)
		mustWrite(t, site, to(rex(n), id, "Patient/rex", "a"))
		until(t, "received", want, func() []string { return r.received("a") })
	}
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	// One at the start, and one for each resync with events.
	if n := lists.Load(); n > 3 {
		t.Errorf("the Records with events were listed %d times for 30 events", n)
	}
}

// TestEventsAfterRefusedWatches shows that new events are delivered soon after kube-apiserver has refused several watches, as
// it does while it restarts.
func TestEventsAfterRefusedWatches(t *testing.T) {
	const refusals = 5
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	var refused atomic.Int32
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/records") && refused.Add(1) <= refusals {
				return nil, syscall.ECONNREFUSED
			}
			return next.RoundTrip(r)
		}}
	})
	r := &receivers{}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	until(t, "all refused", true, func() bool { return refused.Load() > refusals })
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	until(t, "received", []string{"e1"}, func() []string { return r.received("a") })
}

// TestDeliverySchedule shows, with a controlled clock, a restart and a step of the clock back, that
// attempts are made exactly when they are due. Dead letters can be replayed.
func TestDeliverySchedule(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Millisecond))
	delays := []time.Duration{5 * time.Second, 5 * time.Minute, 2 * time.Hour}
	var mu sync.Mutex
	var made []string
	seen := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, made...)
	}
	begin, up := clock.Now(), false
	r := &receivers{answer: func(_ string, _ store.AcceptedEvent, attempts int) delivery.Outcome {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, fmt.Sprint(attempts, " at ", clock.Now().Sub(begin)))
		switch {
		case up:
			return delivered()
		case attempts < len(delays):
			return failed(delivery.Pending, clock.Now().Add(delays[attempts]))
		default:
			return failed(delivery.Failed, time.Time{})
		}
	}}
	start := func(leases string) func() {
		return deliverTo(t, control.Config(), leases, map[string]*receivers{namespace: r}, func(o *deliveries.Options) { o.Clock = clock })
	}
	stop := start(namespace)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	log := site.Deliveries()
	id := delivery.DeliveryID("e1", "a")
	stored := func(attempts int) {
		t.Helper()
		until(t, "attempts in the log", attempts, func() int {
			d, _ := log.Delivery(t.Context(), "a", id)
			return len(d.Attempts)
		})
	}
	want := []string{"0 at 0s"}
	until(t, "attempts", want, seen)
	stored(1)
	for i, delay := range delays {
		if i == 1 { // the schedule and the state of the webhook outlast the process
			stop()
			start(newNamespace(t))
		}
		if i == 2 { // attempts are late by a step back, and not made again
			at := clock.Now()
			clock.SetTime(at.Add(-48 * time.Hour))
			time.Sleep(200 * time.Millisecond)
			clock.SetTime(at)
		}
		clock.Step(delay - time.Millisecond)
		clock.Step(time.Millisecond)
		want = append(want, fmt.Sprint(i+1, " at ", clock.Now().Sub(begin)))
		until(t, "attempts", want, seen)
		stored(i + 2)
	}
	until(t, "status", delivery.Failed, func() delivery.Status {
		d, _ := log.Delivery(t.Context(), "a", id)
		return d.Status
	})
	until(t, "failures in the health", true, func() bool {
		health, _ := log.Health(t.Context())
		return !health["a"].FailingSince.IsZero()
	})
	clock.Step(24 * time.Hour)
	mu.Lock()
	up = true
	mu.Unlock()
	if n, err := log.Replay(t.Context(), delivery.Query{Webhook: "a", Statuses: []delivery.Status{delivery.Undelivered}}); n != (delivery.Replayed{}) || err != nil {
		t.Errorf("replay of others: %+v, error %v", n, err)
	}
	if n, err := log.Replay(t.Context(), delivery.Query{Webhook: "a", Statuses: []delivery.Status{delivery.Failed}}); n != (delivery.Replayed{Count: 1}) || err != nil {
		t.Errorf("replay: %+v, error %v", n, err)
	}
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if got := seen(); len(got) != len(want)+1 || !strings.HasPrefix(got[len(want)], "0 at") {
		t.Errorf("attempts %v, want one more than %v, of a new schedule", got, want)
	}
}
