package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

const patience = time.Minute

// TestDelivers follows events from the outbox to two webhooks, and the log of it.
func TestDelivers(t *testing.T) {
	d := newDatabase(t)
	s, other := d.site(), d.site()
	r, others := &receiver{}, &receiver{}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	q.Add(other, others)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "patient/1", []string{"a", "b"}, "e1", "e2")
	post(t, s, "", nil, "untargeted")
	post(t, other, "patient/1", []string{"a"}, "e1")
	g.Eventually(func() int { return len(r.all()) }, patience).Should(Equal(4))
	g.Eventually(others.events, patience).Should(Equal([]string{"e1"}))
	g.Eventually(func() map[delivery.Status]int { return counts(t, s, "a") }, patience).Should(Equal(map[delivery.Status]int{delivery.Delivered: 2}))

	found, err := s.Deliveries().Delivery(t.Context(), "a", delivery.DeliveryID("e1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	want := delivery.Delivery{ID: delivery.DeliveryID("e1", "a"), Webhook: "a", Status: delivery.Delivered, Attempts: []delivery.Attempt{{StatusCode: 200, Reason: delivery.ReasonDelivered}}}
	want.Event.ID, want.Event.Type, want.Event.Subject, want.Event.Targets = "e1", "task.created", "patient/1", []string{"a", "b"}
	want.Event.Envelope = []byte(fmt.Sprintf(`{"id":"e1","sequence":%d}`, found.Event.Sequence))
	ignored := cmp.FilterPath(func(p cmp.Path) bool {
		return slices.Contains([]string{"Sequence", "Accepted", "At", "Finished"}, p.Last().String()[1:])
	}, cmp.Ignore())
	if diff := cmp.Diff(want, found, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	if found.Finished.IsZero() || found.Event.Accepted.After(found.Finished) {
		t.Errorf("accepted at %v and finished at %v", found.Event.Accepted, found.Finished)
	}
	health, err := s.Deliveries().Health(t.Context())
	if err != nil || health["a"].Pending != 0 || health["a"].LastSuccess.IsZero() || len(health) != 2 {
		t.Errorf("health: %+v, %v", health, err)
	}
}
