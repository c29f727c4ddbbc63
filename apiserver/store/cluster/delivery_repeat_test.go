package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// repeated is a delivery of one event to webhook a, which was delivered once. sent are the times of all
// attempts that have ended.
type repeated struct {
	*testing.T
	namespace, id string
	log           delivery.Log
	to            map[string]*receivers
	// next answers the attempts from the second one on. If it is nil, they succeed.
	next atomic.Pointer[func(attempt int) delivery.Outcome]

	mu   sync.Mutex
	sent []time.Time
}

// newRepeated delivers an event by a process with a config.
func newRepeated(t *testing.T, config *rest.Config) (d *repeated, stop func()) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	d = &repeated{T: t, namespace: namespace, id: delivery.DeliveryID("e", "a"), log: site.Deliveries()}
	d.to = map[string]*receivers{namespace: {answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		outcome := delivered()
		if next := d.next.Load(); next != nil {
			outcome = (*next)(len(d.attempts()) + 1)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sent = append(d.sent, outcome.Attempt.At.UTC().Truncate(time.Microsecond))
		return outcome
	}}}
	stop = deliverTo(t, config, namespace, d.to)
	mustWrite(t, site, to(rex(1), "e", "Patient/rex", "a"))
	d.untilLogged(1)
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	return d, stop
}

func (d *repeated) attempts() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]time.Time{}, d.sent...)
}

func (d *repeated) repeat() {
	d.Helper()
	if _, err := d.log.Redeliver(d.Context(), "a", d.id); err != nil {
		d.Fatal(err)
	}
}

func (d *repeated) untilSent(attempts int) {
	d.Helper()
	until(d.T, "attempts", attempts, func() int { return len(d.attempts()) })
}

// untilLogged waits until the delivery has ended after a number of attempts or more, and until the log has
// each of them once. A process sends again what the former one could not store before its end.
func (d *repeated) untilLogged(attempts int) {
	d.Helper()
	d.untilSent(attempts)
	var logged []time.Time
	until(d.T, "the delivery has ended", true, func() bool {
		found, err := d.log.Delivery(d.Context(), "a", d.id)
		logged = nil
		for _, a := range found.Attempts {
			logged = append(logged, a.At)
		}
		sent := d.attempts()
		return err == nil && found.Status != delivery.Pending && len(logged) > 0 && logged[len(logged)-1].Equal(sent[len(sent)-1])
	})
	if diff := cmp.Diff(d.attempts(), logged); diff != "" {
		d.Errorf("attempts in the log (-sent +logged):\n%s", diff)
	}
}

// gate holds up the requests of a process with a method and a resource while it is closed. held is the number
// of requests that it has held up.
type gate struct {
	method, resource string
	closed           atomic.Pointer[chan struct{}]
	held             atomic.Int64
}

func (g *gate) close() (open func()) {
	release := make(chan struct{})
	g.closed.Store(&release)
	return sync.OnceFunc(func() {
		g.closed.Store(nil)
		close(release)
	})
}

func (g *gate) config() *rest.Config {
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if release := g.closed.Load(); release != nil && r.Method == g.method && strings.Contains(r.URL.Path, "/"+g.resource+"/") {
				g.held.Add(1)
				<-*release
			}
			return next.RoundTrip(r)
		}}
	})
	return config
}

// TestRepeatedBeforeItIsLogged repeats a delivery after a successful attempt that is not in the log yet.
// The log then has that attempt and the next one, also if another process makes the next one.
func TestRepeatedBeforeItIsLogged(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "one process", true: "restart"}[restart], func(t *testing.T) {
			t.Parallel()
			logs := &gate{method: http.MethodPut, resource: "webhookdeliverylogs"}
			d, stop := newRepeated(t, logs.config())
			open := logs.close()
			defer open()
			d.repeat()
			d.untilSent(2)
			until(t, "writes of the log", int64(1), logs.held.Load)
			d.repeat()
			open()
			if restart {
				until(t, "attempts of the delivery", true, func() bool {
					found, err := d.log.Delivery(t.Context(), "a", d.id)
					return err == nil && len(found.Attempts) > 1
				})
				stop()
				deliverTo(t, control.Config(), newNamespace(t), d.to)
			}
			d.untilLogged(3)
			d.repeat()
			d.untilLogged(4)
		})
	}
}

// TestRepeatedDuringAttempt repeats a delivery during an attempt that fails. The attempt does not count for
// the schedule, which the repetition has restarted, but it is in the log.
func TestRepeatedDuringAttempt(t *testing.T) {
	t.Parallel()
	d, _ := newRepeated(t, control.Config())
	begun, end := make(chan struct{}), make(chan struct{})
	next := func(attempt int) delivery.Outcome {
		if attempt > 2 {
			return delivered()
		}
		close(begun)
		<-end
		return failed(delivery.Pending, time.Now().Add(time.Hour))
	}
	d.next.Store(&next)
	d.repeat()
	<-begun
	d.repeat()
	close(end)
	d.untilLogged(3)
}

// TestRepeatedWithoutContent delivers two events whose content is larger than what the log keeps. The older one
// is still in the log, but cannot be repeated.
func TestRepeatedWithoutContent(t *testing.T) {
	t.Parallel()
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: {}})
	for n, id := range []string{"old", "new"} {
		op := rex(n + 1)
		op.Events = func(store.Change) []store.Event {
			large := event(id, "Patient/rex")
			large.Targets = []string{"a"}
			large.Envelope.JSON = bytes.Replace(large.Envelope.JSON, []byte("{}"), fmt.Appendf(nil, "%q", bytes.Repeat([]byte("x"), 300<<10)), 1)
			return []store.Event{large}
		}
		mustWrite(t, site, op)
		until(t, "delivered", delivery.Delivered, func() delivery.Status {
			found, _ := site.Deliveries().Delivery(t.Context(), "a", delivery.DeliveryID(id, "a"))
			return found.Status
		})
		until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	}
	log := site.Deliveries()
	query := delivery.Query{Webhook: "a", Statuses: []delivery.Status{delivery.Delivered}, Count: 10}
	if _, total, err := log.Deliveries(t.Context(), query); err != nil || total != 2 {
		t.Errorf("%d deliveries in the log, error %v", total, err)
	}
	for id, want := range map[string]error{"old": delivery.ErrContentGone, "none": store.ErrNotFound} {
		if _, err := log.Redeliver(t.Context(), "a", delivery.DeliveryID(id, "a")); !errors.Is(err, want) {
			t.Errorf("delivery of %s: got %v, want %v", id, err, want)
		}
	}
	if n, err := log.Replay(t.Context(), query); err != nil || n != (delivery.Replayed{Count: 1, Skipped: 1}) {
		t.Errorf("replay: %+v, error %v; want one repeated and one skipped", n, err)
	}
}

// TestLoggedBeforeCrash stops a process after it has logged a success and before it has removed the
// WebhookDelivery, so that the next process sends the delivery once more. The log has all attempts,
// whether that one succeeds or not.
func TestLoggedBeforeCrash(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(map[bool]string{false: "success", true: "failure"}[fails], func(t *testing.T) {
			t.Parallel()
			removals := &gate{method: http.MethodDelete, resource: "webhookdeliveries"}
			var crashed atomic.Bool
			config := removals.config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
					if crashed.Load() {
						return nil, errDead
					}
					return next.RoundTrip(r)
				}}
			})
			d, stop := newRepeated(t, config)
			open := removals.close()
			defer open()
			d.repeat()
			until(t, "removals", int64(1), removals.held.Load)
			if fails {
				next := func(int) delivery.Outcome { return failed(delivery.Failed, time.Time{}) }
				d.next.Store(&next)
			}
			crashed.Store(true)
			deliverTo(t, control.Config(), newNamespace(t), d.to)
			d.untilLogged(3)
			open()
			stop()
		})
	}
}
