package queue_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// TestRelayOfLargeEvents shows that one transaction moves only as many events as fit into memory.
func TestRelayOfLargeEvents(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	post(t, s, "", []string{"a"}, "e1", "e2", "e3", "e4", "e5")
	_, err := d.pool.Exec(t.Context(), `UPDATE outbox SET envelope = envelope || convert_to(repeat(' ', 6000000), 'UTF8') WHERE site = $1`, s.Number())
	g.Expect(err).NotTo(HaveOccurred())
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, &receiver{})
	interrupted := errors.New("after the first transaction")
	q.SetFault(func(point string) error {
		if point == "relayed" {
			return interrupted
		}
		return nil
	})
	g.Expect(q.RelayAll(t.Context())).To(MatchError(interrupted))
	g.Expect(counts(t, s, "a")[delivery.Pending]).To(Equal(3), "16 MiB, and the rest of the last event")
	q.SetFault(func(string) error { return nil })
	g.Expect(q.RelayAll(t.Context())).To(Succeed())
	g.Expect(counts(t, s, "a")[delivery.Pending]).To(Equal(5))
}
