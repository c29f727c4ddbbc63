package cluster

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestChangesLost shows that changes since a mark are not known if a removal since then is forgotten, or
// if the process started later.
func TestChangesLost(t *testing.T) {
	now := time.Date(2031, 5, 1, 9, 0, 0, 0, time.UTC)
	engine := &Cluster{synced: make(chan struct{}), sites: map[siteID]*index{}, now: func() time.Time { return now }}
	close(engine.synced)
	engine.listed.Store(10)
	s := &Store{engine: engine, index: newIndex(extracting{extract: func(string) []store.IndexValue { return nil }})}
	rex := &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: "patient.rex", UID: "u", ResourceVersion: "12"}, Spec: recordsv1.RecordSpec{Type: "Patient", ID: "rex"}}
	s.index.apply(rex)
	s.index.remove(rex.Name, rex.UID, keyOf(rex), 20, now)
	for _, step := range []struct {
		mark      string
		forgotten bool
		lost      bool
	}{{"9", false, true}, {"10", false, false}, {"19", true, true}, {"20", true, false}} {
		if step.forgotten {
			s.index.forgetRemoved(now.Add(time.Second), 30)
		}
		keys, err := s.ChangedSince(t.Context(), step.mark)
		if errors.Is(err, store.ErrChangesLost) != step.lost {
			t.Errorf("mark %s, removal forgotten %t: got %v, %v; want lost %t", step.mark, step.forgotten, keys, err, step.lost)
		}
		if !step.lost && !step.forgotten && (len(keys) != 1 || keys[0] != keyOf(rex)) {
			t.Errorf("mark %s: got %v, want the removed record", step.mark, keys)
		}
	}
}
