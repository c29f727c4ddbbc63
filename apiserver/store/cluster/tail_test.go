package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	clusterobjects "github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// TestTail shows that a Tail returns the deliveries of a webhook in the order in which their events
// were accepted, whatever their state. It can be continued on another replica.
func TestTail(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	replica := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	g := gomega.NewWithT(t)
	read := func(of *cluster.Store, after delivery.Position, count int) (found []delivery.Delivery, ids []string, next delivery.Position) {
		found, next, err := of.Tail().After(t.Context(), "a", after, count)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		for _, d := range found {
			ids = append(ids, d.Event.ID)
		}
		return found, ids, next
	}
	_, ids, start := read(site, delivery.Position{}, 10)
	if len(ids) > 0 || start == (delivery.Position{}) {
		t.Fatalf("%v from %v, want nothing from now", ids, start)
	}
	mustWrite(t, site, to(rex(1), "e1", "Patient/rex", "a", "b"))
	mustWrite(t, site, to(store.Op{Kind: store.Put, Key: store.Key{Type: "Patient", ID: "tom"}, Body: rex(1).Body}, "e2", "Patient/tom", "a"))
	mustWrite(t, site, to(rex(2), "e3", "Patient/rex", "b"))
	mustWrite(t, site, to(rex(3), "e4", "Patient/rex", "a"))
	var accepted []store.AcceptedEvent
	for _, events := range pending(t, namespace) {
		accepted = append(accepted, events...)
	}

	// A pass makes deliveries in any order. Here a later event comes first.
	createDelivery(t, namespace, key, "a", accepted, "e2")
	g.Consistently(func() []string { _, ids, start = read(site, start, 10); return ids }, "300ms").Should(gomega.BeEmpty(), "e1 was not relayed")

	deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: {answer: func(_ string, e store.AcceptedEvent, _ int) delivery.Outcome {
		if e.ID == "e4" {
			return failed(delivery.Failed, time.Time{})
		}
		return delivered()
	}}})
	var first []delivery.Delivery
	at := start
	g.Eventually(func() (seen []string) { // e1 comes alone if e2 has not been relayed yet
		var more []delivery.Delivery
		more, _, at = read(site, at, 2-len(first))
		first = append(first, more...)
		for _, d := range first {
			seen = append(seen, d.Event.ID)
		}
		return seen
	}, "20s").Should(gomega.Equal([]string{"e1", "e2"}))
	for _, d := range first {
		for _, e := range accepted {
			if e.ID == d.Event.ID && string(e.Envelope) != string(d.Event.Envelope) {
				t.Errorf("envelope of %s: %s, want %s", e.ID, d.Event.Envelope, e.Envelope)
			}
		}
	}
	g.Expect(at.Sequence).To(gomega.Equal(first[1].Position().Sequence))
	until(t, "left", []string{"e4 to a: Failed"}, func() []string { return objectsLeft(t, namespace) })
	g.Eventually(func() []string { _, ids, at = read(replica, at, 2); return ids }, "20s").Should(gomega.Equal([]string{"e4"}))
	_, again, _ := read(site, start, 10)
	if diff := gocmp.Diff([]string{"e1", "e2", "e4"}, again); diff != "" {
		t.Errorf("from the start again (-want +got):\n%s", diff)
	}
}

// createDelivery creates the WebhookDelivery of one of the events.
func createDelivery(t *testing.T, namespace, key, webhook string, events []store.AcceptedEvent, id string) {
	t.Helper()
	for _, e := range events {
		if e.ID != id {
			continue
		}
		at := metav1.NewMicroTime(time.Now())
		summary, err := json.Marshal(map[string]any{"siteKey": key, "webhook": webhook, "sequence": e.Sequence, "accepted": e.Accepted.UnixMilli(), "status": "Pending"})
		if err != nil {
			t.Fatal(err)
		}
		obj := &recordsv1.WebhookDelivery{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: delivery.DeliveryID(e.ID, webhook), Annotations: map[string]string{"records.paddock.health/delivery": string(summary)},
			},
			Spec: recordsv1.WebhookDeliverySpec{
				SiteKey: key, Webhook: webhook, Event: e.ID, Type: e.Type, Subject: e.Subject, Sequence: e.Sequence, Accepted: metav1.NewMicroTime(e.Accepted),
				Envelope: clusterobjects.Compress(e.Envelope, nil), Status: recordsv1.DeliveryPending, Since: at, NextAttempt: &at,
			},
		}
		if err := objects(t).Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("there is no event %s", id)
}
