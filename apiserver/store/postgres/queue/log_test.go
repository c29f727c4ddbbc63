package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestDisabled keeps what was accepted while a webhook was disabled. Once it is enabled again, new
// events arrive, and what is missing by a replay.
func TestDisabled(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	var enabled atomic.Bool
	r := &receiver{answer: func(ctx context.Context, call attempted) (delivery.Outcome, error) {
		if enabled.Load() {
			return delivered(), nil
		}
		return disabled(ctx, call)
	}}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	const events = 30
	post(t, s, "", []string{"a"}, ids("e", events)...)
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Undelivered] }, patience).Should(Equal(events))
	for _, found := range deliveriesOf(t, s, delivery.Query{Webhook: "a"}) {
		g.Expect(found.Attempts).To(BeEmpty(), "nothing was sent")
	}
	hour := time.Now().UTC().Truncate(time.Minute).Add(-time.Hour)
	recent, err := s.Deliveries().Recent(t.Context(), hour)
	g.Expect(recent.From, err).To(Equal(hour))
	failed := int64(0)
	for _, minute := range recent.Minutes {
		failed += minute.Failed
		g.Expect(minute.Pending + minute.Delivered).To(BeZero())
	}
	g.Expect(failed).To(BeEquivalentTo(events))
	enabled.Store(true)
	post(t, s, "", []string{"a"}, "new")
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(1))
	n, err := s.Deliveries().Replay(t.Context(), delivery.Query{Webhook: "a", Statuses: []delivery.Status{delivery.Failed, delivery.Undelivered}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n).To(Equal(delivery.Replayed{Count: events}))
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(events + 1))
}

// TestReplayRange repeats a range and nothing else, each with the id that it had.
func TestReplayRange(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	r := &receiver{}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	for _, id := range []string{"e1", "e2", "e3", "e4"} {
		post(t, s, "", []string{"a", "b"}, id)
		written := time.Now()
		g.Eventually(time.Now, "1s", "1ms").Should(BeTemporally(">", written.Add(2*time.Millisecond))) // so that events have times of their own
	}
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] + counts(t, s, "b")[delivery.Delivered] }, patience).Should(Equal(8))
	all := deliveriesOf(t, s, delivery.Query{Webhook: "a"})
	between := delivery.Query{Webhook: "a", From: all[1].Event.Accepted, To: all[3].Event.Accepted}
	listed := []string{}
	for _, found := range deliveriesOf(t, s, between) {
		listed = append(listed, found.Event.ID)
	}
	g.Expect(listed).To(Equal([]string{"e2", "e3"}))
	none := between
	none.Statuses = []delivery.Status{delivery.Failed}
	n, err := s.Deliveries().Replay(t.Context(), none)
	g.Expect(n, err).To(BeZero())
	n, err = s.Deliveries().Replay(t.Context(), between)
	g.Expect(n, err).To(Equal(delivery.Replayed{Count: 2}))
	g.Eventually(func() int { return len(r.all()) }, patience).Should(Equal(10))
	g.Consistently(func() int { return len(r.all()) }, "300ms").Should(Equal(10))
	again := map[string]int{}
	for _, call := range r.all()[8:] {
		g.Expect(call.Webhook).To(Equal("a"))
		again[call.Event]++
	}
	g.Expect(again).To(Equal(map[string]int{"e2": 1, "e3": 1}))
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(4))
}

// TestLog pages through the log and reads deliveries that do not exist.
func TestLog(t *testing.T) {
	d := newDatabase(t)
	s, other := d.site(), d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	q.Add(other, &receiver{})
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, ids("e", 25)...)
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	var walked []string
	for offset := 0; ; offset += 10 {
		page, total, err := s.Deliveries().Deliveries(t.Context(), delivery.Query{Webhook: "a", Offset: offset, Count: 10})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(BeEquivalentTo(25))
		if len(page) == 0 {
			break
		}
		for _, found := range page {
			g.Expect(found.Event.Envelope).To(BeEmpty())
			walked = append(walked, found.Event.ID)
		}
	}
	want := ids("e", 25)
	for i, id := range walked {
		g.Expect(id).To(Equal(want[len(want)-1-i]), "the newest comes first")
	}
	g.Expect(walked).To(HaveLen(25))
	id := delivery.DeliveryID("e-00001", "a")
	for _, read := range []func() error{
		func() error { _, err := s.Deliveries().Delivery(t.Context(), "b", id); return err },
		func() error { _, err := s.Deliveries().Delivery(t.Context(), "a", "none"); return err },
		func() error { _, err := other.Deliveries().Delivery(t.Context(), "a", id); return err },
		func() error { _, err := s.Deliveries().Redeliver(t.Context(), "b", id); return err },
	} {
		if err := read(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
}

// TestTrim deletes what ended before the retention, and keeps what is pending.
func TestTrim(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	c := newClock()
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		switch call.Event {
		case "pending":
			return retry(c.now(), c.now().Add(1000*time.Hour)), nil
		case "failed":
			return delivery.Outcome{Status: delivery.Failed, Attempt: failure(c.now())}, nil
		default:
			return delivered(), nil
		}
	}}
	q := newQueue(t, d.pool, queue.Options{Now: c.now, Retention: time.Hour})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "pending", "failed", "delivered")
	want := map[delivery.Status]int{delivery.Pending: 1, delivery.Failed: 1, delivery.Delivered: 1}
	g.Eventually(func() int { return len(r.all()) }, patience).Should(Equal(3))
	g.Eventually(func() map[delivery.Status]int { return counts(t, s, "a") }, patience).Should(Equal(want))
	c.set(c.now().Add(59 * time.Minute))
	g.Expect(q.Trim(t.Context())).To(Succeed())
	g.Expect(counts(t, s, "a")).To(Equal(want))
	event := store.Key{Type: "Event", ID: "pending"}
	_, err := s.Get(t.Context(), event)
	g.Expect(err).NotTo(HaveOccurred())
	c.set(c.now().Add(2 * time.Minute))
	g.Expect(q.Trim(t.Context())).To(Succeed())
	g.Expect(counts(t, s, "a")).To(Equal(map[delivery.Status]int{delivery.Pending: 1}))
	_, err = s.Get(t.Context(), event)
	g.Expect(err).To(MatchError(store.ErrNotFound))
	var events int
	g.Expect(d.pool.QueryRow(t.Context(), `SELECT count(*) FROM event WHERE site = $1`, s.Number()).Scan(&events)).To(Succeed())
	g.Expect(events).To(Equal(1))

	// The retention of a site takes precedence.
	post(t, s, "", []string{"a"}, "later")
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(1))
	s.SetRetention(store.Retention{Deliveries: 3 * time.Hour})
	c.set(c.now().Add(2 * time.Hour))
	g.Expect(q.Trim(t.Context())).To(Succeed())
	g.Expect(counts(t, s, "a")[delivery.Delivered]).To(Equal(1))
	c.set(c.now().Add(2 * time.Hour))
	g.Expect(q.Trim(t.Context())).To(Succeed())
	g.Expect(counts(t, s, "a")[delivery.Delivered]).To(BeZero())
}

// TestRedeliverDuringAttempt redelivers while an attempt is under way: what that one comes to does
// not count any more, and pending deliveries are counted right.
func TestRedeliverDuringAttempt(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	release := make(chan struct{})
	r := &receiver{}
	r.answer = func(context.Context, attempted) (delivery.Outcome, error) {
		if len(r.all()) > 1 {
			return delivered(), nil
		}
		<-release
		return delivery.Outcome{Status: delivery.Failed, Attempt: failure(time.Now())}, nil
	}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	stop := run(t, q)
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "e")
	g.Eventually(r.events, patience).Should(HaveLen(1))
	_, err := s.Deliveries().Redeliver(t.Context(), "a", delivery.DeliveryID("e", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(1))
	close(release)
	stop() // which waits for the first attempt to be stored
	g.Expect(counts(t, s, "a")).To(Equal(map[delivery.Status]int{delivery.Delivered: 1}))
	g.Expect(healthOf(g, s, "a").Pending).To(BeZero())
	g.Expect(healthOf(g, s, "a").FailingSince).To(BeZero())
}

// TestRedeliverBeforeResult ends the attempts of a delivery and of its redelivery at the same time, so
// that their results are stored together.
func TestRedeliverBeforeResult(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	webhooks := ids("w", 20)
	release := make(chan struct{})
	var mu sync.Mutex
	first := map[string]bool{}
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		mu.Lock()
		again := first[call.Webhook]
		first[call.Webhook] = true
		mu.Unlock()
		<-release
		if again {
			return delivered(), nil
		}
		time.Sleep(time.Millisecond) // so that this result is the later one of its batch
		return delivery.Outcome{Status: delivery.Failed, Attempt: failure(time.Now())}, nil
	}}
	q := newQueue(t, d.pool, queue.Options{Workers: 2})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "", webhooks, "e")
	g.Eventually(r.events, patience).Should(HaveLen(len(webhooks)))
	for _, webhook := range webhooks {
		_, err := s.Deliveries().Redeliver(t.Context(), webhook, delivery.DeliveryID("e", webhook))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(r.events, patience).Should(HaveLen(2 * len(webhooks)))
	close(release)
	arrives(t, s, 1, webhooks...)
	for _, webhook := range webhooks {
		g.Expect(healthOf(g, s, webhook).FailingSince).To(BeZero(), "the result of the first attempt does not count")
	}
}

// TestAttemptThatCannotBegin has a webhook that is not handed over for a while. River counts no error.
func TestAttemptThatCannotBegin(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	var ready atomic.Bool
	r := &receiver{answer: func(context.Context, attempted) (delivery.Outcome, error) {
		if ready.Load() {
			return delivered(), nil
		}
		return delivery.Outcome{}, errors.New("the webhook is not handed over")
	}}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "e")
	g.Eventually(func() int { return len(r.events()) }, patience).Should(BeNumerically(">=", 2))
	var errorsOfJobs, attempts int
	g.Expect(d.pool.QueryRow(t.Context(), `SELECT COALESCE(sum(cardinality(errors)), 0), max(attempt) FROM river_job`).Scan(&errorsOfJobs, &attempts)).To(Succeed())
	g.Expect(errorsOfJobs).To(BeZero())
	g.Expect(attempts).To(BeNumerically("<=", 1))
	ready.Store(true)
	arrives(t, s, 1, "a")
}

// TestDiscardedJob has River give up the job of a delivery, which gets another one.
func TestDiscardedJob(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "e1", "e2")
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	_, err := d.pool.Exec(t.Context(), `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = (SELECT min(id) FROM river_job)`)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, q)
	arrives(t, s, 2, "a")
}

// TestErase erases a site with deliveries under way: its jobs go too, those of other sites stay.
func TestErase(t *testing.T) {
	d := newDatabase(t)
	s, other := d.open("erased"), d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	q.Add(other, &receiver{})
	g := NewWithT(t)
	for _, site := range []*postgres.Store{s, other} {
		post(t, site, "", []string{"a"}, ids("e", 25)...)
	}
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	conn, err := d.pool.Acquire(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Release()
	g.Expect(schema.Erase(t.Context(), conn.Conn(), "erased")).To(Succeed())
	left := map[string]int{}
	for _, table := range []string{"river_job", "delivery", "event", "webhook", "relayed"} {
		var rows int
		g.Expect(conn.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&rows)).To(Succeed())
		left[table] = rows
	}
	g.Expect(left).To(Equal(map[string]int{"river_job": 25, "delivery": 25, "event": 25, "webhook": 1, "relayed": 1}))
}

// TestRecentIsBounded counts the newest deliveries of a webhook that has more than are counted.
func TestRecentIsBounded(t *testing.T) {
	const most = 10_000
	d := newDatabase(t)
	s := d.site()
	g := NewWithT(t)
	last := time.Now().UTC().Truncate(time.Minute)
	insert := func(webhook string, from, number int, at time.Time, status int) {
		_, err := d.pool.Exec(t.Context(), `INSERT INTO delivery (site, id, webhook, seq, at, status, tries)
			SELECT (SELECT max(site) FROM sites), gen_random_uuid(), $1, n, $4::int8 + n % 1000, $5, 0 FROM generate_series($2::int8, $2::int8 + $3::int8 - 1) n`,
			webhook, from, number, at.UnixMilli(), status)
		g.Expect(err).NotTo(HaveOccurred())
	}
	for _, webhook := range []string{"a", "b"} {
		_, err := d.pool.Exec(t.Context(), `INSERT INTO webhook (site, webhook) SELECT max(site), $1 FROM sites`, webhook)
		g.Expect(err).NotTo(HaveOccurred())
	}
	insert("a", 0, 2, last.Add(-3*time.Minute), 1)
	insert("a", 10, 3, last.Add(-2*time.Minute), 1)
	insert("a", 20, most-4, last.Add(-time.Minute), 1)
	insert("a", most+20, 3, last, 1)
	insert("b", 0, 1, last.Add(-2*time.Minute), 2)
	insert("b", 1, 5, last.Add(-time.Minute), 0)
	recent, err := s.Deliveries().Recent(t.Context(), last.Add(-time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recent).To(Equal(delivery.Recent{From: last.Add(-time.Minute), Minutes: []delivery.Minute{
		{At: last.Add(-time.Minute), Delivered: most - 4, Pending: 5}, {At: last, Delivered: 3},
	}}))
}
