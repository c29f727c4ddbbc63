package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// TestHeldDeliveryCrashes is TestDeliveryCrashes with events that are accepted while the process
// runs, so that their deliveries have no WebhookDeliveries at first. One of the webhooks fails.
func TestHeldDeliveryCrashes(t *testing.T) {
	engine := newEngine(t, cluster.Options{})
	var survived atomic.Int64
	var group errgroup.Group
	group.SetLimit(6)
	for at := int64(1); at <= 12; at++ {
		for _, after := range []bool{false, true} {
			group.Go(func() error {
				if !crashHeldDelivery(t, engine, &mortal{dieAt: at, after: after}) {
					survived.Add(1)
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	for at := int64(13); survived.Load() == 0 && at <= 30; at++ { // a slow process writes its log more often
		if !crashHeldDelivery(t, engine, &mortal{dieAt: at}) {
			survived.Add(1)
		}
	}
	if survived.Load() == 0 {
		t.Error("the process has more writes than were tried")
	}
}

// crashHeldDelivery reports whether the process reached the write at which it stops.
func crashHeldDelivery(t *testing.T, engine *cluster.Cluster, m *mortal) bool {
	namespace, key := newSite(t)
	site := engine.Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{answer: func(webhook string, _ store.AcceptedEvent, attempts int) delivery.Outcome {
		if webhook == "b" && attempts == 0 {
			return failed(delivery.Pending, time.Now().Add(50*time.Millisecond))
		}
		return delivered()
	}}
	sites := map[string]*receivers{namespace: r}
	m.writes.Store(-1000)
	stop := deliverTo(t, m.config(), namespace, sites)
	mustWrite(t, site, to(rex(1), "e0", "Patient/rex", "a", "b"))
	until(t, "the process works", []string{}, func() []string { return objectsLeft(t, namespace) })
	m.writes.Store(0)
	mustWrite(t, site, to(rex(2), "e1", "Patient/rex", "a", "b"))
	mustWrite(t, site, to(store.Op{Kind: store.Purge, Key: rex(0).Key}, "e2", "Patient/rex", "a", "b"))
	until(t, "the process works", true, func() bool { return m.dead.Load() || len(objectsLeft(t, namespace)) == 0 })
	stop()
	stop = deliverTo(t, control.Config(), newNamespace(t), sites)
	defer stop()
	step := fmt.Sprintf("death at write %d, after it: %v", m.dieAt, m.after)
	until(t, step, []string{}, func() []string { return objectsLeft(t, namespace) })
	for _, webhook := range []string{"a", "b"} {
		if diff := cmp.Diff([]string{"e0", "e1", "e2"}, r.received(webhook), sorted); diff != "" {
			t.Errorf("%s: delivered to %s (-want +got):\n%s", step, webhook, diff)
		}
	}
	return m.dead.Load()
}

// TestSuccessCostsNoObject shows that only a delivery whose first attempt fails has a
// WebhookDelivery.
func TestSuccessCostsNoObject(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{answer: func(webhook string, _ store.AcceptedEvent, attempts int) delivery.Outcome {
		if webhook == "fails" {
			return failed(delivery.Pending, time.Now().Add(time.Hour))
		}
		return delivered()
	}}
	var created atomic.Int64
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/webhookdeliveries") {
				created.Add(1)
			}
			return next.RoundTrip(r)
		}}
	})
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r}, func(o *deliveries.Options) { o.HoldTime = time.Hour })
	left := func() []string { return objectsLeft(t, namespace) }
	mustWrite(t, site, to(rex(1), "e0", "Patient/rex", "a"))
	until(t, "left", []string{}, left)
	created.Store(0) // the first event may have been there before the process
	for n := 2; n < 10; n++ {
		mustWrite(t, site, to(rex(n), fmt.Sprint("e", n), "Patient/rex", "a", "b"))
	}
	until(t, "left", []string{}, left)
	mustWrite(t, site, to(rex(10), "e10", "Patient/rex", "a", "fails", "b"))
	until(t, "left", []string{"e10 to fails: Pending"}, left)
	if n := created.Load(); n != 1 {
		t.Errorf("%d WebhookDeliveries were created, want 1: all but one delivery succeeded at once", n)
	}
}

// TestHeldDeliveriesAreKept shows that deliveries get WebhookDeliveries while their first attempt is
// in progress, and that these are sent once.
func TestHeldDeliveriesAreKept(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	hang := make(chan struct{})
	var attempts atomic.Int64
	r := &receivers{answer: func(webhook string, e store.AcceptedEvent, _ int) delivery.Outcome {
		if e.ID != "e0" {
			attempts.Add(1)
			<-hang
		}
		if webhook == "fails" && e.ID != "e0" {
			return failed(delivery.Failed, time.Time{})
		}
		return delivered()
	}}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r}, func(o *deliveries.Options) { o.HoldTime = time.Millisecond })
	left := func() []string { return slices.Sorted(slices.Values(objectsLeft(t, namespace))) }
	mustWrite(t, site, to(rex(1), "e0", "Patient/rex", "a"))
	until(t, "left", nil, left)
	mustWrite(t, site, to(rex(2), "e1", "Patient/rex", "a", "fails"))
	until(t, "left", []string{"e1 to a: Pending", "e1 to fails: Pending"}, left)
	close(hang)
	until(t, "left", []string{"e1 to fails: Failed"}, left)
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts of 2 deliveries", n)
	}
}

// TestErasedWhileHeld shows that no WebhookDelivery is left of an event that is erased from its Record
// during the first attempt.
func TestErasedWhileHeld(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	begun, hang := make(chan struct{}), make(chan struct{})
	r := &receivers{answer: func(webhook string, e store.AcceptedEvent, _ int) delivery.Outcome {
		if e.ID == "e0" {
			return delivered()
		}
		if e.ID == "e1" {
			close(begun)
			<-hang
		}
		return failed(delivery.Failed, time.Time{})
	}}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r}, func(o *deliveries.Options) { o.HoldTime = time.Hour })
	left := func() []string { return objectsLeft(t, namespace) }
	mustWrite(t, site, to(rex(1), "e0", "Patient/rex", "a"))
	until(t, "left", []string{}, left)
	mustWrite(t, site, to(rex(2), "e1", "Patient/rex", "a"))
	<-begun
	mustWrite(t, site, store.Op{Kind: store.Purge, Erase: true, Key: rex(0).Key})
	close(hang)
	mustWrite(t, site, to(rex(3), "e3", "Patient/rex", "a"))
	until(t, "left", []string{"e3 to a: Failed"}, left)
}

// TestErasedWhileRelayed shows that no WebhookDelivery is left of an event that is erased from its Record
// before a new process has created the WebhookDelivery.
func TestErasedWhileRelayed(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	begun, hang := make(chan struct{}), make(chan struct{})
	var once sync.Once
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/"+namespace+"/webhookdeliveries") {
				once.Do(func() {
					close(begun)
					<-hang
				})
			}
			return next.RoundTrip(r)
		}}
	})
	r := &receivers{answer: func(string, store.AcceptedEvent, int) delivery.Outcome { return failed(delivery.Failed, time.Time{}) }}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	<-begun
	mustWrite(t, site, store.Op{Kind: store.Purge, Erase: true, Key: rex(0).Key})
	close(hang)
	mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
	until(t, "left", []string{"e2 to a: Failed"}, func() []string { return objectsLeft(t, namespace) })
}

// TestErasedWhileRelayFails shows that no WebhookDelivery is left of an event that is erased from its Record
// before a new process has created the first WebhookDelivery, if the request for the second one fails.
func TestErasedWhileRelayFails(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a", "b"))
	begun, hang := make(chan struct{}), make(chan struct{})
	var creates atomic.Int64
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/"+namespace+"/webhookdeliveries") {
				switch creates.Add(1) {
				case 1:
					close(begun)
					<-hang
				case 2:
					return nil, errors.New("the connection is lost")
				}
			}
			return next.RoundTrip(r)
		}}
	})
	var sent atomic.Bool
	r := &receivers{answer: func(_ string, e store.AcceptedEvent, _ int) delivery.Outcome {
		if e.ID == "e1" {
			sent.Store(true)
		}
		return failed(delivery.Failed, time.Time{})
	}}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	<-begun
	mustWrite(t, site, store.Op{Kind: store.Purge, Erase: true, Key: rex(0).Key})
	close(hang)
	mustWrite(t, site, to(rex(2), "e2", "Patient/rex", "a"))
	until(t, "left", []string{"e2 to a: Failed"}, func() []string { return objectsLeft(t, namespace) })
	if sent.Load() {
		t.Error("an erased event was sent")
	}
}

// TestCreatedByEarlierHolder shows that a WebhookDelivery is sent that an earlier holder of the shard has created, if
// the request of the present one to create it fails without a response, and the earlier one removes the event from the
// Record after that.
func TestCreatedByEarlierHolder(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a"))
	var list recordsv1.RecordList
	if err := objects(t).List(t.Context(), &list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Records, %v", len(list.Items), err)
	}
	var creates atomic.Int64
	config := control.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return interposed{next, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/namespaces/"+namespace+"/webhookdeliveries") || creates.Add(1) > 1 {
				return next.RoundTrip(r)
			}
			if err := createAsEarlierHolder(next, r); err != nil {
				return nil, err
			}
			none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"events":null,"hasEvents":null}}`))
			if err := objects(t).Patch(t.Context(), &list.Items[0], none); err != nil {
				t.Error(err)
			}
			return nil, errors.New("the connection is lost")
		}}
	})
	r := &receivers{answer: func(string, store.AcceptedEvent, int) delivery.Outcome { return failed(delivery.Failed, time.Time{}) }}
	deliverTo(t, config, namespace, map[string]*receivers{namespace: r})
	until(t, "left", []string{"e1 to a: Failed"}, func() []string { return objectsLeft(t, namespace) })
}

// createAsEarlierHolder sends a request to create a WebhookDelivery as it would have been an hour ago.
func createAsEarlierHolder(next http.RoundTripper, r *http.Request) error {
	var d recordsv1.WebhookDelivery
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		return err
	}
	before := metav1.NewMicroTime(d.Spec.Since.Add(-time.Hour))
	d.Spec.Since, d.Spec.NextAttempt = before, &before
	body, err := json.Marshal(&d)
	if err != nil {
		return err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	response, err := next.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("create a WebhookDelivery: %s", response.Status)
	}
	return nil
}

// TestErasedWhileWaiting shows that an event is not sent after its erasure, if its delivery waits for an
// earlier one.
func TestErasedWhileWaiting(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	r := &receivers{ordered: []string{"a"}, answer: func(_ string, e store.AcceptedEvent, _ int) delivery.Outcome {
		if e.ID == "e1" {
			return failed(delivery.Pending, time.Now().Add(500*time.Millisecond))
		}
		return delivered()
	}}
	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: r}, func(o *deliveries.Options) { o.HoldTime = time.Millisecond })
	left := func() []string { return slices.Sorted(slices.Values(objectsLeft(t, namespace))) }
	mustWrite(t, site, to(rex(1), "e0", "Patient/rex", "a"))
	until(t, "left", nil, left)
	mustWrite(t, site, to(rex(2), "e1", "Patient/rex", "a"))
	mustWrite(t, site, to(rex(3), "e2", "Patient/rex", "a"))
	until(t, "left", []string{"e1 to a: Pending", "e2 to a: Pending"}, left)
	mustWrite(t, site, store.Op{Kind: store.Purge, Erase: true, Key: rex(0).Key})
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got := r.received("a"); !slices.Equal(got, []string{"e0"}) {
			t.Fatalf("received %v, want e0 only", got)
		}
	}
}
