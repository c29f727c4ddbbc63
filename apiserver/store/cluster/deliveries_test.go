package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// receivers are the webhooks of one site. Several delivery processes may share them.
type receivers struct {
	// answer returns the outcome of an attempt. If it is nil, all attempts succeed.
	answer func(webhook string, event store.AcceptedEvent, attempts int) delivery.Outcome
	// ordered are the webhooks that receive the events of a subject in order.
	ordered []string

	mu  sync.Mutex
	got map[string][]store.AcceptedEvent
}

// Attempt implements delivery.Attempter.
func (r *receivers) Attempt(ctx context.Context, webhook string, event store.AcceptedEvent, attempts int) (delivery.Outcome, error) {
	if ctx.Err() != nil {
		return delivery.Outcome{}, ctx.Err()
	}
	outcome := delivered()
	if r.answer != nil {
		outcome = r.answer(webhook, event, attempts)
	}
	if outcome.Status == delivery.Delivered {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.got == nil {
			r.got = map[string][]store.AcceptedEvent{}
		}
		r.got[webhook] = append(r.got[webhook], event)
	}
	return outcome, nil
}

// After implements deliveries.Target.
func (r *receivers) After(state delivery.State, a delivery.Attempt) delivery.State {
	if a.Reason == delivery.ReasonDelivered {
		return delivery.State{LastSuccess: a.At}
	}
	state.Failures++
	if state.FailingSince.IsZero() {
		state.FailingSince = a.At
	}
	return state
}

// Ordered implements deliveries.Target.
func (r *receivers) Ordered(webhook string) bool { return slices.Contains(r.ordered, webhook) }

// received returns the ids of the events that a webhook received, each once, in the order of
// arrival.
func (r *receivers) received(webhook string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, e := range r.got[webhook] {
		if !slices.Contains(found, e.ID) {
			found = append(found, e.ID)
		}
	}
	return found
}

func delivered() delivery.Outcome {
	return delivery.Outcome{Status: delivery.Delivered, Attempt: delivery.Attempt{At: time.Now(), Reason: delivery.ReasonDelivered, StatusCode: 204}}
}

func failed(status delivery.Status, next time.Time) delivery.Outcome {
	return delivery.Outcome{Status: status, Next: next, Attempt: delivery.Attempt{
		At: time.Now(), Reason: delivery.ReasonStatus, StatusCode: 500, Response: []byte("no"), Message: "the receiver answered 500",
	}}
}

// deliverTo starts a delivery process that sends the events of a namespace to receivers. Processes
// with the same leases share the work.
func deliverTo(t *testing.T, config *rest.Config, leases string, to map[string]*receivers, change ...func(*deliveries.Options)) (stop func()) {
	t.Helper()
	options := deliveries.Options{
		Namespace: leases, Shards: 1, LeaseDuration: time.Minute, // a busy machine loses no Lease
		Open: func(namespace, _ string) (deliveries.Target, bool) {
			target, ok := to[namespace]
			return target, ok
		},
	}
	for _, c := range change {
		c(&options)
	}
	runner, err := deliveries.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runner.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// until waits until look returns want.
func until[T any](t *testing.T, what string, want T, look func() T) {
	t.Helper()
	gomega.NewWithT(t).Eventually(look, 20*time.Second, 20*time.Millisecond).Should(gomega.BeComparableTo(want), what)
}

// objectsLeft returns the objects of deliveries and events. There are none after all were
// delivered.
func objectsLeft(t *testing.T, namespace string) []string {
	t.Helper()
	left := []string{}
	for record, events := range pending(t, namespace) {
		left = append(left, fmt.Sprint(record, ids(events)))
	}
	var list recordsv1.WebhookDeliveryList
	if err := objects(t).List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		left = append(left, fmt.Sprintf("%s to %s: %s", d.Spec.Event, d.Spec.Webhook, d.Spec.Status))
	}
	return left
}

func to(op store.Op, id, subject string, webhooks ...string) store.Op {
	op.Events = func(store.Change) []store.Event {
		e := event(id, subject)
		e.Targets = webhooks
		return []store.Event{e}
	}
	return op
}

// TestDeliveries tests delivery, the log, and replay.
func TestDeliveries(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a", "b"))
	mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
	mustWrite(t, site, to(store.Op{Kind: store.Purge, Key: rex(0).Key}, "e3", "Patient/rex", "a", "b"))
	accepted := pending(t, namespace)["Patient/rex"]
	r := &receivers{}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r})
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if got := r.received("a"); !cmp.Equal(got, []string{"e1", "e2", "e3"}, sorted) {
		t.Errorf("a received %v", got)
	}
	if got := r.received("b"); !cmp.Equal(got, []string{"e1", "e3"}, sorted) {
		t.Errorf("b received %v", got)
	}
	for _, e := range accepted {
		got := r.got["a"][slices.IndexFunc(r.got["a"], func(g store.AcceptedEvent) bool { return g.ID == e.ID })]
		got.Targets = e.Targets
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("event as delivered (-accepted +delivered):\n%s", diff)
		}
	}
	var records recordsv1.RecordList
	if err := objects(t).List(t.Context(), &records, client.InNamespace(namespace)); err != nil || len(records.Items) > 0 {
		t.Errorf("%d records are left after the purge, error %v", len(records.Items), err)
	}

	log := site.Deliveries()
	page, total, err := log.Deliveries(t.Context(), delivery.Query{Webhook: "a", Offset: 1, Count: 1})
	if err != nil || total != 3 || len(page) != 1 || page[0].Event.ID != "e2" || page[0].Status != delivery.Delivered || len(page[0].Attempts) != 1 {
		t.Fatalf("second of the log of a: %+v of %d, error %v", page, total, err)
	}
	one, err := log.Delivery(t.Context(), "a", page[0].ID)
	if err != nil || string(one.Event.Envelope) != string(accepted[1].Envelope) {
		t.Errorf("delivery: %s, error %v", one.Event.Envelope, err)
	}
	if _, err := log.Redeliver(t.Context(), "a", page[0].ID); err != nil {
		t.Fatal(err)
	}
	until(t, "times that e2 arrived", 2, func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := 0
		for _, e := range r.got["a"] {
			if e.ID == "e2" && string(e.Envelope) == string(accepted[1].Envelope) {
				n++
			}
		}
		return n
	})
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if n, err := log.Replay(t.Context(), delivery.Query{Webhook: "b", From: accepted[2].Accepted}); err != nil || n != (delivery.Replayed{Count: 1}) {
		t.Errorf("replay of b: %+v, error %v", n, err)
	}
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	if _, total, err := log.Deliveries(t.Context(), delivery.Query{Webhook: "a", Count: 10}); err != nil || total != 3 {
		t.Errorf("%d deliveries in the log of a, error %v; want 3, each once", total, err)
	}
	health, err := log.Health(t.Context())
	if err != nil || health["a"].LastSuccess.IsZero() || health["a"].Pending != 0 {
		t.Errorf("health %+v, error %v", health, err)
	}
	hour := time.Now().Truncate(time.Minute).Add(-time.Hour)
	recent, err := log.Recent(t.Context(), hour)
	if err != nil || !recent.From.Equal(hour) || totals(recent) != (delivery.Minute{Delivered: 5}) {
		t.Errorf("recent deliveries %+v, error %v; want 5 delivered", recent, err)
	}
	if recent, err := log.Recent(t.Context(), hour.Add(2*time.Hour)); err != nil || len(recent.Minutes) > 0 {
		t.Errorf("deliveries from an hour ahead: %+v, error %v", recent, err)
	}
}

// TestDumpOfRepeatedDelivery gives up a delivery that was made again after a success. It has ended once.
func TestDumpOfRepeatedDelivery(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e", "Patient/rex", "a"))
	var fails atomic.Bool
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: {answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		if fails.Load() {
			return delivery.Outcome{Status: delivery.Failed, Attempt: delivery.Attempt{At: time.Now(), Reason: delivery.ReasonStatus}}
		}
		return delivered()
	}}})
	until(t, "left", []string{}, func() []string { return objectsLeft(t, namespace) })
	fails.Store(true)
	if _, err := site.Deliveries().Redeliver(t.Context(), "a", delivery.DeliveryID("e", "a")); err != nil {
		t.Fatal(err)
	}
	until(t, "dead letters", []string{"e to a: Failed"}, func() []string { return objectsLeft(t, namespace) })
	ended, _, err := site.Archive().DumpEnded(t.Context(), "", 10)
	if err != nil || len(ended) != 1 || ended[0].Status != delivery.Failed {
		t.Errorf("%d ended deliveries, %v: %+v", len(ended), err, ended)
	}
}

// TestUnreadableDelivery shows that one WebhookDelivery whose summary another program has changed hides no others.
func TestUnreadableDelivery(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: {answer: func(string, store.AcceptedEvent, int) delivery.Outcome {
		return delivery.Outcome{Status: delivery.Failed, Attempt: delivery.Attempt{At: time.Now(), Reason: delivery.ReasonStatus}}
	}}})
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
	until(t, "dead letters", []string{"e1 to a: Failed", "e2 to a: Failed"}, func() []string { return slices.Sorted(slices.Values(objectsLeft(t, namespace))) })
	changed := recordsv1.WebhookDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: delivery.DeliveryID("e1", "a")}}
	annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"records.paddock.health/delivery":"changed"}}}`))
	if err := objects(t).Patch(t.Context(), &changed, annotation); err != nil {
		t.Fatal(err)
	}
	page, total, err := site.Deliveries().Deliveries(t.Context(), delivery.Query{Webhook: "a", Count: 10})
	if err != nil || total != 1 || page[0].Event.ID != "e2" {
		t.Errorf("%d deliveries, %v: %+v", total, err, page)
	}
	if health, err := site.Deliveries().Health(t.Context()); err != nil {
		t.Errorf("health: %v: %+v", err, health)
	}
}

// totals returns the sums of all minutes, without their times.
func totals(recent delivery.Recent) (sum delivery.Minute) {
	for _, m := range recent.Minutes {
		sum.Pending, sum.Delivered, sum.Failed = sum.Pending+m.Pending, sum.Delivered+m.Delivered, sum.Failed+m.Failed
	}
	return sum
}

// TestRecentBeyondTheLog delivers more than the log of a webhook keeps. The numbers are then complete
// only for events accepted after the oldest delivery that is kept has ended.
func TestRecentBeyondTheLog(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{answer: func(webhook string, _ store.AcceptedEvent, _ int) delivery.Outcome {
		if webhook == "b" {
			return failed(delivery.Failed, time.Time{})
		}
		return delivered()
	}}
	mustWrite(t, site, to(rex(1), "b", "", "b"))
	const kept = 200
	for i := range kept {
		mustWrite(t, site, to(rex(i), fmt.Sprint("e", i), "", "a"))
	}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r})
	until(t, "deliveries of a", kept, func() int { return len(r.received("a")) })
	hour := time.Now().Truncate(time.Minute).Add(-time.Hour)
	log := site.Deliveries()
	until(t, "from when the numbers are complete", true, func() bool {
		recent, err := log.Recent(t.Context(), hour)
		return err == nil && recent.From.After(hour.Add(time.Hour-time.Minute)) && !recent.From.After(time.Now().Add(time.Minute))
	})
}

var sorted = cmp.Transformer("sorted", func(list []string) []string { return slices.Sorted(slices.Values(list)) })
