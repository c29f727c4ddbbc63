package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// clock is set by tests.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now().Truncate(time.Millisecond)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// TestSchedule makes each attempt when it is due: not a millisecond before, and at once then, also
// after a restart and after a clock that has stepped back has caught up.
func TestSchedule(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	c := newClock()
	delays := []time.Duration{5 * time.Second, 5 * time.Minute, 14 * time.Hour}
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		if call.Attempts < len(delays) {
			return retry(c.now(), c.now().Add(delays[call.Attempts])), nil
		}
		return delivery.Outcome{Status: delivery.Failed, Attempt: failure(c.now())}, nil
	}}
	start := func() func() {
		q := newQueue(t, d.pool, queue.Options{Now: c.now})
		q.Add(s, r)
		return run(t, q)
	}
	stop := start()
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "e")
	read := func() delivery.Delivery {
		found, err := s.Deliveries().Delivery(t.Context(), "a", delivery.DeliveryID("e", "a"))
		if err != nil {
			return delivery.Delivery{}
		}
		return found
	}
	for n, delay := range delays {
		due := c.now().Add(delay)
		g.Eventually(func() time.Time { return read().NextAttempt }, patience).Should(BeTemporally("==", due))
		if n == 1 {
			stop()
			stop = start()
		}
		if n == 2 { // attempts are late by a step back, and not made again
			c.set(due.Add(-48 * time.Hour))
			g.Consistently(func() int { return len(r.all()) }, "500ms").Should(Equal(n + 1))
		}
		c.set(due.Add(-time.Millisecond))
		g.Consistently(func() int { return len(r.all()) }, "500ms").Should(Equal(n + 1))
		c.set(due)
	}
	g.Eventually(func() delivery.Status { return read().Status }, patience).Should(Equal(delivery.Failed))
	found := read()
	g.Expect(found.Attempts).To(HaveLen(4))
	g.Expect(found.Attempts[3].Response).To(Equal([]byte("oops")))
	g.Expect(found.Finished).To(BeTemporally("==", c.now()))
	for n, call := range r.all() {
		g.Expect(call.Attempts).To(Equal(n))
	}

	again, err := s.Deliveries().Redeliver(t.Context(), "a", found.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Status).To(Equal(delivery.Pending))
	c.set(time.Now().Add(time.Second))
	g.Eventually(func() int { return len(r.all()) }, patience).Should(Equal(5))
	g.Expect(r.all()[4].Attempts).To(Equal(0), "the schedule begins anew")
	g.Eventually(func() int { return len(read().Attempts) }, patience).Should(Equal(5))
}

// TestBreaker opens a breaker: its webhook gets one attempt whenever the breaker's time is over,
// and nothing else, also from another process after a restart. Other webhooks go on. The first
// success lets all through.
func TestBreaker(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	c := newClock()
	var mu sync.Mutex
	up := false
	hold := make(chan struct{})
	close(hold)
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		mu.Lock()
		held, up := hold, up
		mu.Unlock()
		if call.Webhook == "bad" {
			<-held
		}
		if up || call.Webhook == "good" {
			return delivered(), nil
		}
		return retry(c.now(), c.now().Add(time.Hour)), nil
	}}
	to := func(webhook string) int {
		n := 0
		for _, call := range r.all() {
			if call.Webhook == webhook {
				n++
			}
		}
		return n
	}
	start := func() func() {
		q := newQueue(t, d.pool, queue.Options{Now: c.now, Workers: 2, Breaker: breaker{after: 3, time: time.Minute}})
		q.Add(s, r)
		return run(t, q)
	}
	stop := start()
	g := NewWithT(t)
	const events = 40
	post(t, s, "", []string{"bad", "good"}, ids("e", events)...)
	g.Eventually(func() int { return to("good") }, patience).Should(Equal(events))
	g.Eventually(func() int { return to("bad") }, patience).Should(BeNumerically(">=", 3))
	health, err := s.Deliveries().Health(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(health["bad"].Pending).To(BeEquivalentTo(events))
	g.Expect(health["bad"].FailingSince).To(BeTemporally("==", c.now()))
	g.Expect(health["bad"].OldestPending).NotTo(BeZero())
	stop()
	before := to("bad")
	g.Expect(before).To(BeNumerically("<=", 3+2), "attempts that were under way when it opened")

	stop = start()
	g.Consistently(func() int { return to("bad") }, "1s").Should(Equal(before))
	mu.Lock()
	hold = make(chan struct{})
	mu.Unlock()
	c.set(c.now().Add(time.Minute))
	g.Eventually(func() int { return to("bad") }, patience).Should(Equal(before + 1))
	g.Consistently(func() int { return to("bad") }, "1s").Should(Equal(before+1), "while an attempt is under way")
	close(hold)
	g.Consistently(func() int { return to("bad") }, "1s").Should(Equal(before+1), "once it failed")
	stop()
	mu.Lock()
	up = true
	mu.Unlock()
	start()
	c.set(c.now().Add(time.Minute))
	g.Eventually(func() int { return counts(t, s, "bad")[delivery.Delivered] }, patience).Should(Equal(events - before - 1))
	c.set(c.now().Add(time.Hour))
	g.Eventually(func() map[delivery.Status]int { return counts(t, s, "bad") }, patience).Should(Equal(map[delivery.Status]int{delivery.Delivered: events}))
	health, err = s.Deliveries().Health(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(health["bad"].Pending).To(BeZero())
	g.Expect(health["bad"].FailingSince).To(BeZero())
}

// TestSuccessWhileOpen lets an attempt succeed that began before another one opened the breaker: its
// success is stored, closes the breaker and lets the other deliveries through.
func TestSuccessWhileOpen(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	release := make(chan struct{})
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		switch {
		case call.Event == "slow":
			<-release
		case call.Event == "bad" && call.Attempts == 0:
			return retry(time.Now(), time.Now().Add(10*time.Millisecond)), nil
		}
		return delivered(), nil
	}}
	q := newQueue(t, d.pool, queue.Options{Breaker: breaker{after: 1, time: time.Hour}})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "", []string{"a"}, "slow", "bad")
	g.Eventually(func() time.Time { return healthOf(g, s, "a").FailingSince }, patience).ShouldNot(BeZero())
	post(t, s, "", []string{"a"}, "later")
	g.Eventually(func() int64 { return healthOf(g, s, "a").Pending }, patience).Should(BeEquivalentTo(3))
	g.Consistently(r.events, "300ms").Should(ConsistOf("slow", "bad"))
	close(release)
	arrives(t, s, 3, "a")
}
