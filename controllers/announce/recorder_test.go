package announce

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// namespaces is a cache with the namespaces that are being deleted, or not.
type namespaces map[string]bool

func (n namespaces) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	terminating, there := n[key.Name]
	if !there {
		return errors.New("not found")
	}
	if terminating {
		into.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	}
	return nil
}

func (n namespaces) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestRecorder(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		recorded  bool
	}{
		"namespace":                       {"clinic", true},
		"namespace that is being deleted": {"leaving", false},
		"namespace that cannot be read":   {"unknown", true},
		"no namespace":                    {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			next := events.NewFakeRecorder(1)
			about := &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "oak"}}
			NewRecorder(next, namespaces{"clinic": false, "leaving": true}).Eventf(about, nil, "Normal", "Deleting", "Ready", "%s", "note")
			if got := len(next.Events) == 1; got != test.recorded {
				t.Errorf("recorded %v, want %v", got, test.recorded)
			}
		})
	}
}
