package queue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// TestInterruptions fails at every point at which a process may end, several times: every event
// reaches every webhook all the same.
func TestInterruptions(t *testing.T) {
	for _, point := range []string{"inserted", "deleted", "relayed", "attempted", "ended"} {
		t.Run(point, func(t *testing.T) {
			d := newDatabase(t)
			s := d.site()
			r := &receiver{}
			var failures atomic.Int64
			q := newQueue(t, d.pool, queue.Options{})
			q.SetFault(func(at string) error {
				if at == point && failures.Add(1) <= 3 {
					return errors.New("interrupted")
				}
				return nil
			})
			q.Add(s, r)
			run(t, q)
			post(t, s, "", []string{"a", "b"}, ids("e", 20)...)
			arrives(t, s, 20, "a", "b")
			if failures.Load() == 0 {
				t.Error("it was not interrupted")
			}
			if point != "attempted" && point != "ended" && len(r.all()) != 40 {
				t.Errorf("%d attempts of 40 deliveries", len(r.all()))
			}
		})
	}
}

// arrives waits for all events at all webhooks, with nothing left to do.
func arrives(t *testing.T, s *postgres.Store, events int, webhooks ...string) {
	t.Helper()
	g := NewWithT(t)
	for _, webhook := range webhooks {
		g.Eventually(func() map[delivery.Status]int { return counts(t, s, webhook) }, 60*time.Second, "50ms").
			Should(Equal(map[delivery.Status]int{delivery.Delivered: events}))
	}
	health, err := s.Deliveries().Health(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for _, webhook := range webhooks {
		g.Expect(health[webhook].Pending).To(BeZero())
	}
}

// TestLostConnections ends all connections of two processes again and again while writers write and
// deliveries fail: nothing is lost.
func TestLostConnections(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		if call.Attempts == 0 && call.Sequence%3 == 0 {
			return retry(time.Now(), time.Now().Add(20*time.Millisecond)), nil
		}
		return delivered(), nil
	}}
	const writers, each = 4, 50
	const deliveries = "deliveries" // the name of the sessions that are ended
	for range 2 {
		config := d.pool.Config()
		config.ConnConfig.RuntimeParams["application_name"] = deliveries
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		q := newQueue(t, pool, queue.Options{RescueAfter: 2 * time.Second})
		q.Add(s, r)
		run(t, q)
	}
	ended := make(chan struct{})
	var cutting, writing sync.WaitGroup
	cutting.Go(func() {
		ticker := time.NewTicker(150 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; n < 10; n++ {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			// The writers have other sessions: a writer would have to repeat its write.
			_, err := d.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = $1 AND query !~ 'res' AND random() < 0.7`, deliveries)
			if err != nil && t.Context().Err() == nil {
				t.Logf("cut: %v", err)
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for n := range each {
				id := fmt.Sprintf("%d-%d", w, n)
				post(t, s, "", []string{"a"}, id)
			}
		})
	}
	writing.Wait()
	close(ended)
	cutting.Wait()
	arrives(t, s, writers*each, "a")
}

// TestQueuesThatDoNotStart delivers although River cannot start the queue of a webhook for a while,
// and although it stops one.
func TestQueuesThatDoNotStart(t *testing.T) {
	d := newDatabase(t)
	s := d.site()
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	run(t, q)
	g := NewWithT(t)
	count := func(query string) func() int {
		return func() (n int) {
			g.Expect(d.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+query).Scan(&n)).To(Succeed())
			return n
		}
	}
	rename := func(from, to string) {
		t.Helper()
		_, err := d.pool.Exec(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to)
		g.Expect(err).NotTo(HaveOccurred())
	}
	delivers := func(events int) {
		t.Helper()
		g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, 40*time.Second, "50ms").Should(Equal(events), "before the queue is idle")
	}
	g.Eventually(count(`river_queue`), patience).Should(Equal(1), "the queue of probes")
	rename("river_queue", "away")
	post(t, s, "", []string{"a"}, "e1")
	g.Eventually(count(`river_job WHERE state = 'available'`), patience).Should(Equal(1))
	g.Consistently(count(`river_job WHERE state = 'available'`), "500ms").Should(Equal(1))
	rename("away", "river_queue")
	delivers(1)
	g.Expect(q.StopQueue(t.Context(), s.Number(), "a")).To(Succeed())
	post(t, s, "", []string{"a"}, "e2")
	delivers(2)
}

const (
	childURI  = "PADDOCK_QUEUE_CHILD"
	childSite = "PADDOCK_QUEUE_SITE"
	// hangs is the number of workers of the child and of the attempts that it begins, because a webhook
	// without a success has two slots. Its further jobs wait for a slot.
	hangs = 2
)

// child is a process that hangs in its attempts, until it is killed.
func child(uri, key string) int {
	ctx := context.Background()
	pool, err := postgres.Connect(ctx, uri)
	if err != nil {
		return 1
	}
	s, err := postgres.Open(ctx, pool, key, postgres.Options{})
	if err != nil {
		return 1
	}
	q, err := queue.New(pool, queue.Options{Workers: hangs, Breaker: breaker{after: 1 << 30}})
	if err != nil {
		return 1
	}
	q.Add(s, &receiver{answer: func(ctx context.Context, call attempted) (delivery.Outcome, error) {
		fmt.Println(call.Event)
		<-ctx.Done()
		return delivery.Outcome{}, ctx.Err()
	}})
	if err := q.Run(ctx); err != nil {
		return 1
	}
	return 0
}

// TestKilled kills a process in the midst of its attempts. Another one rescues them, and delivers
// in the meantime what the process had not fetched.
func TestKilled(t *testing.T) {
	d := newDatabase(t)
	s := d.open("killed")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), executable)
	process.Env = append(os.Environ(), childURI+"="+d.uri, childSite+"=killed")
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	const events = 20
	post(t, s, "", []string{"a"}, ids("e", events)...)
	hanging := bufio.NewScanner(output)
	for range hangs {
		if !hanging.Scan() {
			t.Fatal("the process made no attempt")
		}
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	r := &receiver{}
	q := newQueue(t, d.pool, queue.Options{RescueAfter: 8 * time.Second}) // longer than an attempt on a busy machine
	q.Add(s, r)
	run(t, q)
	g := NewWithT(t)
	g.Eventually(func() int { return len(r.all()) }, patience).Should(BeNumerically(">=", events-hangs*queue.JobsPerSlot))
	g.Eventually(func() int { return counts(t, s, "a")[delivery.Delivered] }, 90*time.Second, "200ms").Should(Equal(events))
	if got := len(r.all()); got != events {
		t.Errorf("%d attempts, want %d", got, events)
	}
}
