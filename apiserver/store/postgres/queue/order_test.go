package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// TestOrder lets publishers, two processes and failures meet: a subject of an ordered webhook has
// one delivery at a time, in the order of sequence, and all arrive.
func TestOrder(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	const publishers, each, subjects = 8, 40, 5
	var mu sync.Mutex
	inFlight, last := map[string]string{}, map[string]int64{}
	r := &receiver{ordered: true}
	r.answer = func(_ context.Context, call attempted) (delivery.Outcome, error) {
		subject := call.Event[:1]
		mu.Lock()
		if other := inFlight[subject]; other != "" {
			t.Errorf("%s is attempted while %s is", call.Event, other)
		}
		inFlight[subject] = call.Event
		fails := rand.IntN(5) == 0
		if call.Sequence <= last[subject] {
			t.Errorf("event %s of sequence %d after %d", call.Event, call.Sequence, last[subject])
		}
		if !fails {
			last[subject] = call.Sequence
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			inFlight[subject] = ""
			mu.Unlock()
		}()
		if fails {
			return retry(time.Now(), time.Now().Add(5*time.Millisecond)), nil
		}
		return delivered(), nil
	}
	for range 2 {
		q := newQueue(t, d.connect(), queue.Options{})
		q.Add(s, r)
		run(t, q)
	}
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			for n := range each {
				subject := (p + n) % subjects
				post(t, s, fmt.Sprint(subject), []string{"a"}, fmt.Sprintf("%d-%d-%d", subject, p, n))
			}
		})
	}
	publishing.Wait()
	g := NewWithT(t)
	// Below the period in which chains are healed.
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, 50*time.Second, "50ms").Should(Equal(publishers * each))
}

// TestOrderAfterFailure shows that what follows a failed delivery is attempted, that a replayed one
// waits for its turn, and that heal starts a chain that has no active delivery.
func TestOrderAfterFailure(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	g := NewWithT(t)
	release := make(chan struct{})
	r := &receiver{ordered: true}
	r.answer = func(ctx context.Context, call attempted) (delivery.Outcome, error) {
		switch {
		case call.Event == "e2" && call.Attempts == 0 && len(r.all()) < 4:
			return delivery.Outcome{Status: delivery.Failed, Attempt: failure(time.Now())}, nil
		case call.Event == "e3":
			select {
			case <-release:
			case <-ctx.Done():
				return delivery.Outcome{}, ctx.Err()
			}
		}
		return delivered(), nil
	}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	run(t, q)
	post(t, s, "rex", []string{"a"}, "e1", "e2", "e3", "e4")
	g.Eventually(r.events, patience).Should(Equal([]string{"e1", "e2", "e3"}))
	_, err := s.Deliveries().Redeliver(t.Context(), "a", delivery.DeliveryID("e2", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Consistently(r.events, "300ms").Should(HaveLen(3))
	close(release)
	g.Eventually(r.events, patience).Should(Equal([]string{"e1", "e2", "e3", "e2", "e4"}))
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(4))

	post(t, s, "rex", []string{"b"}, "e5")
	g.Eventually(func() int { return counts(t, s, "b")[delivery.Delivered] }, patience).Should(Equal(1))
	_, err = d.pool.Exec(t.Context(), `UPDATE delivery SET status = 0, job = NULL, next = NULL WHERE site = $1 AND webhook = 'b'`, s.Number())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(q.Heal(t.Context())).To(Succeed())
	g.Eventually(func() int { return counts(t, s, "b")[delivery.Delivered] }, patience).Should(Equal(1))
}

// TestOrderWhileRelayed ends the delivery of a subject while the relay, which saw it pending, is
// about to commit the next one: one of the two starts it.
func TestOrderWhileRelayed(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	release := make(chan struct{})
	r := &receiver{ordered: true, answer: func(ctx context.Context, call attempted) (delivery.Outcome, error) {
		if call.Event == "e1" {
			<-release
		}
		return delivered(), nil
	}}
	q := newQueue(t, d.pool, queue.Options{})
	var relays atomic.Int64
	q.SetFault(func(point string) error {
		if point != "inserted" || relays.Add(1) != 2 {
			return nil
		}
		close(release)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for counts(t, s, "a")[delivery.Delivered] == 0 && relays.Load() == 2 {
				if t.Context().Err() != nil {
					return
				}
			}
		}()
		select { // it waits for this transaction, and could not end before
		case <-ended:
		case <-time.After(500 * time.Millisecond):
		}
		relays.Add(1)
		<-ended
		return nil
	})
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	post(t, s, "rex", []string{"a"}, "e1")
	g.Eventually(r.events, patience).Should(Equal([]string{"e1"}))
	post(t, s, "rex", []string{"a"}, "e2")
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, patience).Should(Equal(2))
}
