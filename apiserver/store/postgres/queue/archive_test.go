package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// TestArchiveReturn copies deliveries to another site and back, as a move that is undone does. What
// ended before stays, and what was made again since then replaces it.
func TestArchiveReturn(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	from, to := d.site(), d.site()
	former, current := queue.NewArchive(d.pool, from.Number()), queue.NewArchive(d.pool, to.Number())
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(from, &receiver{})
	stop := run(t, q)
	post(t, from, "", []string{"a"}, "e1", "e2")
	g.Eventually(func() int { return counts(t, from, "a")[delivery.Delivered] }, patience).Should(Equal(2))
	stop()
	post(t, from, "", []string{"a"}, "waits")
	unordered := func(string) bool { return false }

	pending, err := former.DumpPending(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current.RestorePending(t.Context(), pending, unordered)).To(Succeed())
	ended, _, err := former.DumpEnded(t.Context(), "", 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current.RestoreEnded(t.Context(), ended)).To(Succeed())
	g.Expect(counts(t, to, "a")).To(Equal(map[delivery.Status]int{delivery.Delivered: 2, delivery.Pending: 1}))

	_, err = to.Deliveries().Redeliver(t.Context(), "a", delivery.DeliveryID("e1", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	pending, err = current.DumpPending(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(former.RestorePending(t.Context(), pending, unordered)).To(Succeed())
	g.Expect(counts(t, from, "a")).To(Equal(map[delivery.Status]int{delivery.Delivered: 1, delivery.Pending: 2}), "e2 ended before, e1 is made again")

	ended, _, err = current.DumpEnded(t.Context(), "", 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ended).To(HaveLen(1))
	again := ended[0]
	again.Status, again.Finished = delivery.Failed, again.Finished.Add(time.Minute)
	for _, one := range []delivery.Archived{again, ended[0]} { // the older one does not replace it
		g.Expect(former.RestoreEnded(t.Context(), []delivery.Archived{one})).To(Succeed())
		g.Expect(counts(t, from, "a")).To(Equal(map[delivery.Status]int{delivery.Failed: 1, delivery.Pending: 2}))
	}
}

// TestArchiveOfRepeatedEvent copies the deliveries of events that were posted again with the same id after their
// deliveries were made. As in a relay, no second delivery is made, neither of a pending one nor of one that has
// ended.
func TestArchiveOfRepeatedEvent(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	from, to := d.site(), d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(from, &receiver{})
	stop := run(t, q)
	post(t, from, "", []string{"a"}, "ended")
	g.Eventually(func() int { return counts(t, from, "a")[delivery.Delivered] }, patience).Should(Equal(1))
	stop()
	post(t, from, "", []string{"a"}, "pending")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	post(t, from, "", []string{"a"}, "new", "pending", "ended", "new")

	pending, err := queue.NewArchive(d.pool, from.Number()).DumpPending(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	var events []string
	for _, one := range pending.Deliveries {
		events = append(events, one.Event.ID)
	}
	g.Expect(events).To(ConsistOf("pending", "new"))
	g.Expect(queue.NewArchive(d.pool, to.Number()).RestorePending(t.Context(), pending, func(string) bool { return false })).To(Succeed())
	g.Expect(counts(t, to, "a")).To(Equal(map[delivery.Status]int{delivery.Pending: 2}))
}

// TestArchiveOfSharedEvent restores the deliveries of one event to several webhooks, each with its own
// webhook as the target, as the cluster returns them. Erasing the record of the event deletes all.
func TestArchiveOfSharedEvent(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	now := time.Now().UTC().Truncate(time.Millisecond)
	archive := queue.NewArchive(d.pool, s.Number())
	of := func(webhook string) delivery.Archived {
		event := store.AcceptedEvent{ID: "e", Type: "task.created", Subject: "Task/t", Sequence: 1, Accepted: now, Targets: []string{webhook}, Envelope: []byte("{}")}
		return delivery.Archived{Delivery: delivery.Delivery{ID: delivery.DeliveryID("e", webhook), Webhook: webhook, Event: event, Status: delivery.Failed, Finished: now}}
	}
	dropped := func(webhook string) delivery.Archived {
		d := of(webhook)
		d.Event.Envelope = []byte{}
		return d
	}
	g.Expect(archive.RestoreEnded(t.Context(), []delivery.Archived{dropped("c")})).To(Succeed())
	g.Expect(archive.RestoreEnded(t.Context(), []delivery.Archived{of("a"), dropped("b")})).To(Succeed())
	var envelope string
	g.Expect(d.pool.QueryRow(t.Context(), `SELECT convert_from(envelope, 'UTF8') FROM event WHERE site = $1`, s.Number()).Scan(&envelope)).To(Succeed())
	g.Expect(envelope).To(Equal("{}"), "the log has dropped the envelope of the other deliveries only")
	_, err := s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Task", ID: "t"}, Erase: true}})
	g.Expect(err).NotTo(HaveOccurred())
	var left int
	g.Expect(d.pool.QueryRow(t.Context(), `SELECT count(*) FROM delivery WHERE site = $1`, s.Number()).Scan(&left)).To(Succeed())
	g.Expect(left).To(BeZero())
}

// TestReturnOfOpenBreaker returns to a storage where the breaker of a webhook was open.
func TestReturnOfOpenBreaker(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	var healthy atomic.Bool
	r := &receiver{answer: func(context.Context, attempted) (delivery.Outcome, error) {
		if healthy.Load() {
			return delivered(), nil
		}
		return retry(time.Now(), time.Now().Add(time.Hour)), nil
	}}
	start := func() (stop func()) {
		q := newQueue(t, d.pool, queue.Options{Breaker: breaker{after: 1, time: time.Hour}})
		q.Add(s, r)
		return run(t, q)
	}
	stop := start()
	post(t, s, "", []string{"a"}, "e1", "e2")
	g.Eventually(func() time.Time { return healthOf(g, s, "a").FailingSince }, patience).ShouldNot(BeZero())
	stop()
	archive := queue.NewArchive(d.pool, s.Number())
	pending, err := archive.DumpPending(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for i := range pending.Deliveries {
		pending.Deliveries[i].NextAttempt = time.Time{}
	}
	g.Expect(archive.RestorePending(t.Context(), pending, func(string) bool { return false })).To(Succeed())
	healthy.Store(true)
	start()
	arrives(t, s, 2, "a")
}

// TestArchivedWithoutEnvelope restores a delivery of a site in the cluster that has dropped the envelope of
// the event. It cannot be made again.
func TestArchivedWithoutEnvelope(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var ended []delivery.Archived
	for i, envelope := range [][]byte{nil, []byte("{}")} {
		event := store.AcceptedEvent{ID: []string{"dropped", "kept"}[i], Type: "order.created", Sequence: int64(i + 1), Accepted: now, Envelope: envelope}
		ended = append(ended, delivery.Archived{Delivery: delivery.Delivery{
			ID: delivery.DeliveryID(event.ID, "a"), Webhook: "a", Event: event, Status: delivery.Failed, Finished: now,
		}})
	}
	g.Expect(queue.NewArchive(d.pool, s.Number()).RestoreEnded(t.Context(), ended)).To(Succeed())

	_, err := s.Deliveries().Redeliver(t.Context(), "a", ended[0].ID)
	g.Expect(err).To(MatchError(delivery.ErrContentGone))
	g.Expect(s.Deliveries().Replay(t.Context(), delivery.Query{Webhook: "a"})).To(Equal(delivery.Replayed{Count: 1, Skipped: 1}))
	g.Expect(counts(t, s, "a")).To(Equal(map[delivery.Status]int{delivery.Failed: 1, delivery.Pending: 1}))
}
