package deliveries

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

// failingTarget is a Target whose attempts fail before anything is sent.
type failingTarget struct{ attempts int }

func (t *failingTarget) Attempt(context.Context, string, store.AcceptedEvent, int) (delivery.Outcome, error) {
	t.attempts++
	return delivery.Outcome{}, errors.New("no attempt")
}

func (t *failingTarget) After(state delivery.State, _ delivery.Attempt) delivery.State { return state }

func (t *failingTarget) Ordered(string) bool { return true }

// TestStartDue shows when a due delivery must wait because an earlier event of its subject may have been neither
// delivered nor found.
func TestStartDue(t *testing.T) {
	for of, test := range map[string]struct {
		change func(q *queue)
		sent   bool
		woken  bool
	}{
		"nothing to wait for":                    {func(*queue) {}, true, false},
		"before all deliveries are known":        {func(q *queue) { q.complete = false }, false, false},
		"Records wait since the site was closed": {func(q *queue) { q.closed["key"] = true }, false, true},
		"Records of another site wait":           {func(q *queue) { q.closed["other"] = true }, true, true},
		"another replica may have the shard":     {func(q *queue) { past := time.Now(); q.lease.overdueAt.Store(&past) }, false, false},
	} {
		t.Run(of, func(t *testing.T) {
			target := &failingTarget{}
			q := newQueue(&Runner{options: Options{
				Open:    func(string, string) (Target, bool) { return target, true },
				PerSite: 1, PerWebhook: 1, Clock: clock.RealClock{},
			}}, "clinic", &heldLease{})
			later := time.Now().Add(time.Hour)
			q.lease.overdueAt.Store(&later)
			q.complete = true
			object := &recordsv1.WebhookDelivery{}
			q.insert(&entry{name: "e1-to-a", subject: "Patient/rex", hook: &hook{id: hookID{"key", "a"}}, object: object, first: object})
			test.change(q)
			q.startDue(t.Context(), t.Context())
			q.attempts.Wait()
			if got := target.attempts > 0; got != test.sent {
				t.Errorf("sent: %t, want %t", got, test.sent)
			}
			if got := len(q.wakeSync) > 0; got != test.woken {
				t.Errorf("syncLoop was woken: %t, want %t", got, test.woken)
			}
		})
	}
}
