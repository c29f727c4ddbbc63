package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// TestErasedBytes erases a record whose value is in every kind of object, and searches etcd's
// database for the bytes of the value after compaction and defragmentation, as
// docs/guides/erasure.md describes.
func TestErasedBytes(t *testing.T) {
	g := NewWithT(t)
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	secret := "mulberry" + strings.ReplaceAll(uuid.NewString(), "-", "")
	write := func(id, event string, n int, targets ...string) {
		t.Helper()
		op := rex(n)
		op.Key.ID = id
		op.Body.JSON = fmt.Appendf(nil, `{"resourceType":"Patient","id":"","meta":{},"n":%d,"a":%q}`, n, secret)
		op.Claims = []store.Claim{{Line: "Idempotency-Key " + secret + id, Expires: time.Now().Add(time.Hour)}}
		op.Events = func(store.Change) []store.Event {
			text := fmt.Appendf(nil, `{"id":%q,"sequence":,"data":%q}`, event, secret)
			return []store.Event{{
				ID: event, Type: "user.updated", Subject: "Patient/" + id, Targets: targets,
				Envelope: store.Envelope{JSON: text, SequenceOffset: bytes.Index(text, []byte(`,"data"`))},
			}}
		}
		mustWrite(t, site, op)
	}
	to := &receivers{answer: func(webhook string, _ store.AcceptedEvent, _ int) delivery.Outcome {
		if webhook == "fails" {
			outcome := failed(delivery.Pending, time.Now().Add(time.Hour))
			outcome.Attempt.Response = []byte("I refuse " + secret)
			return outcome
		}
		return delivered()
	}}
	stop := deliverTo(t, control.Config(), namespace, map[string]*receivers{namespace: to})
	write("rex", "e1", 1, "works", "fails")
	write("rex", "e2", 2, "works")
	erased := []string{"rex", "bella"}
	write("bella", "e3", 1, "works")
	for n := range 10 { // so that their deliveries are removed together
		id := fmt.Sprintf("pup%d", n)
		write(id, "p-"+id, 1, "works")
		erased = append(erased, id)
	}
	all := func(webhook string) []delivery.Delivery {
		found, _, err := site.Deliveries().Deliveries(t.Context(), delivery.Query{Webhook: webhook, Count: 100})
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	g.Eventually(func() int {
		done := 0
		for _, d := range all("works") {
			if d.Status == delivery.Delivered {
				done++
			}
		}
		return done
	}, 30*time.Second).Should(Equal(13))
	g.Eventually(func() int {
		attempts := 0
		for _, d := range all("fails") {
			attempts += len(d.Attempts)
		}
		return attempts
	}, 30*time.Second).Should(Equal(1))
	stop()
	write("rex", "e4", 3, "works") // stays in the Record
	mustWrite(t, site, store.Op{Kind: store.Delete, Key: store.Key{Type: "Patient", ID: "bella"}, Method: store.MethodDelete})
	inDatabase := func() bool {
		content, err := os.ReadFile(control.EtcdDatabase())
		g.Expect(err).NotTo(HaveOccurred())
		return bytes.Contains(content, []byte(secret))
	}
	g.Eventually(inDatabase, 30*time.Second).Should(BeTrue(), "the test must find the value before it is erased")

	var group errgroup.Group
	for _, id := range erased {
		group.Go(func() error {
			results, err := site.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Patient", ID: id}, Method: store.MethodDelete, Erase: true}})
			if err == nil && results[0].Outcome != store.Removed {
				return fmt.Errorf("%s: outcome %v", id, results[0].Outcome)
			}
			return err
		})
	}
	g.Expect(group.Wait()).To(Succeed())
	g.Expect(all("works")).To(BeEmpty())
	g.Expect(all("fails")).To(BeEmpty())
	g.Expect(control.CompactEtcd(t.Context())).To(Succeed())
	g.Expect(inDatabase()).To(BeFalse())
	g.Expect(site.Stats().Records).To(BeZero())
}
