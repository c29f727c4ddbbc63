package sites

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

func connectionTo(t *testing.T, uri string) dsn.Connection {
	t.Helper()
	connection, err := dsn.Parse(map[string][]byte{"uri": []byte(uri)}, "uri")
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestPools opens stores of several sites. Nothing is connected for it.
func TestPools(t *testing.T) {
	d := newDatabases(Options{})
	oak := connectionTo(t, "postgres://oak:first@db.example.org/clinics")
	rotated := connectionTo(t, "postgres://oak:second@db.example.org/clinics")
	acquire := func(connection dsn.Connection) any {
		t.Helper()
		pool, err := d.acquire(t.Context(), connection)
		if err != nil {
			t.Fatal(err)
		}
		return pool
	}
	first, second, other := acquire(oak), acquire(oak), acquire(rotated)
	if first != second || first == other {
		t.Error("a pool is not that of its connection alone")
	}
	d.release(oak)
	if acquire(oak) != first {
		t.Error("a pool that a store still uses was given up")
	}
	d.release(oak)
	d.release(oak)
	if acquire(oak) == first {
		t.Error("a pool that no store used was kept")
	}
	replicated := oak
	replicated.ReplicaURI = rotated.URI
	shared := acquire(replicated).(*sharedPool)
	if shared.replicas == nil || shared.Config().MaxConns+shared.standbys.Config().MaxConns != first.(*sharedPool).Config().MaxConns {
		t.Error("the pools of a database with replicas have other connections than that of one without")
	}
	d.release(replicated)
	if len(d.pools) != 2 {
		t.Errorf("%d pools are open, want 2", len(d.pools))
	}
}

// TestReportIndex reports each state once, and again for a newer spec unless another process
// has said otherwise.
func TestReportIndex(t *testing.T) {
	d := &database{extractor: store.NoExtractor}
	const generation = 4
	var there []metav1.Condition
	var got []string
	report := func(generation int64, failing error) {
		t.Helper()
		err := d.reportIndex(meta.FindStatusCondition(there, sitesv1.ConditionIndexReady), func(wanted *metav1.Condition) error {
			if !prepare(there, wanted, generation) || failing != nil {
				return failing
			}
			meta.SetStatusCondition(&there, *wanted)
			got = append(got, fmt.Sprint(wanted.Status, wanted.ObservedGeneration))
			return nil
		})
		if !errors.Is(err, failing) {
			t.Errorf("reporting: %v, want %v", err, failing)
		}
	}
	report(generation, nil) // nothing is known
	d.indexed.Store(int32(indexing))
	report(generation, context.DeadlineExceeded)
	report(generation, nil)
	report(generation, nil)
	d.indexed.Store(int32(indexed))
	report(generation, nil)
	report(generation, nil)
	since := there[0].LastTransitionTime
	report(generation+1, nil)
	if there[0].LastTransitionTime != since {
		t.Error("a status that stayed has a new time of transition")
	}
	there[0].Status = metav1.ConditionFalse // another process's word
	report(generation+1, nil)
	report(generation+2, nil)
	if diff := cmp.Diff([]string{"False4", "True4", "True5"}, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}
