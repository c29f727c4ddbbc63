package queue_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// follower reads the tail of a webhook from a position on.
type follower struct {
	g       *WithT
	site    *postgres.Store
	webhook string
	at      delivery.Position
}

func follow(t *testing.T, s *postgres.Store, webhook string) *follower {
	f := &follower{g: NewWithT(t), site: s, webhook: webhook}
	f.g.Expect(f.next(t.Context(), 10)).To(BeEmpty())
	f.g.Expect(f.at).NotTo(BeZero())
	return f
}

// next returns the ids of the events that come next.
func (f *follower) next(ctx context.Context, count int) []string {
	found, next, err := f.site.Tail().After(ctx, f.webhook, f.at, count)
	f.g.Expect(err).NotTo(HaveOccurred())
	ids := []string{}
	for _, d := range found {
		kept, err := f.site.Deliveries().Delivery(ctx, f.webhook, d.ID)
		f.g.Expect(err).NotTo(HaveOccurred())
		f.g.Expect(d.Event).To(Equal(kept.Event))
		f.g.Expect(d.Event.Envelope).NotTo(BeEmpty())
		ids = append(ids, d.Event.ID)
	}
	f.at = next
	return ids
}

// TestTail follows the deliveries of a webhook, whatever becomes of them, and continues from where
// it was.
func TestTail(t *testing.T) {
	d := newDatabase(t)
	s, other := d.site(), d.site()
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		if call.Event == "e-00002" {
			return delivery.Outcome{Status: delivery.Failed, Attempt: failure(time.Now())}, nil
		}
		return delivered(), nil
	}}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	q.Add(other, r)
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "before")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	f, b := follow(t, s, "a"), follow(t, s, "b")
	post(t, s, "", []string{"a"}, ids("e", 5)...)
	post(t, s, "", []string{"b"}, "of-b")
	post(t, other, "", []string{"a"}, "of-other")
	g.Consistently(func() []string { return f.next(t.Context(), 2) }, "100ms").Should(BeEmpty(), "nothing was relayed")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	g.Eventually(func() []string { return f.next(t.Context(), 2) }, patience).Should(Equal([]string{"e-00000", "e-00001"}))
	g.Eventually(func() []string { return b.next(t.Context(), 2) }, patience).Should(Equal([]string{"of-b"}))
	run(t, q)
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] + counts(t, s, "a")[delivery.Failed] }, patience).Should(Equal(6))
	g.Expect(f.next(t.Context(), 2)).To(Equal([]string{"e-00002", "e-00003"}))
	_, err := s.Deliveries().Redeliver(t.Context(), "a", delivery.DeliveryID("e-00000", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.next(t.Context(), 2)).To(Equal([]string{"e-00004"}))
	g.Expect(f.next(t.Context(), 2)).To(BeEmpty())
}

// TestTailAwaitsOpenWrites hands an event on before one of an earlier time whose write is still open.
func TestTailAwaitsOpenWrites(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	g := NewWithT(t)
	f := follow(t, s, "a")
	tx, err := d.pool.Begin(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	head, envelope := outbox.Pack(store.Event{ID: "early", Type: "task.created", Targets: []string{"a"}, Envelope: store.Envelope{JSON: []byte(`{"sequence":}`), SequenceOffset: 12}})
	// As a write does (clock.go): the time of the lock is not later than that of the event.
	_, err = tx.Exec(t.Context(), `WITH t AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 AS ms)
		INSERT INTO outbox (site, seq, at, version, event, envelope)
		SELECT $1, nextval('outbox_seq'), l.ms, 1, $2, $3 FROM (SELECT t.ms, pg_advisory_xact_lock_shared(-$1::int4, (t.ms % 2147483648)::int4) FROM t OFFSET 0) l`, s.Number(), head, envelope)
	g.Expect(err).NotTo(HaveOccurred())
	post(t, s, "", []string{"a"}, "late")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	g.Consistently(func() []string { return f.next(t.Context(), 10) }, "200ms").Should(BeEmpty(), "an event of an earlier time can still be accepted")
	g.Expect(tx.Commit(t.Context())).To(Succeed())
	g.Consistently(func() []string { return f.next(t.Context(), 10) }, "200ms").Should(BeEmpty(), "it has not been relayed")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	g.Eventually(func() []string { return f.next(t.Context(), 10) }, patience).Should(Equal([]string{"early", "late"}))
}
