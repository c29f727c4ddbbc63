package sites

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if len(d.pools) != 2 {
		t.Errorf("%d pools are open, want 2", len(d.pools))
	}
}

// TestReportIndex reports each state once: other processes may say otherwise of theirs.
func TestReportIndex(t *testing.T) {
	d := &database{extraction: Extraction{Version: 3}}
	var got []metav1.ConditionStatus
	report := func(failing error) {
		t.Helper()
		err := d.reportIndex(func(condition *metav1.Condition) error {
			if failing == nil {
				got = append(got, condition.Status)
			}
			return failing
		})
		if !errors.Is(err, failing) {
			t.Errorf("reporting: %v, want %v", err, failing)
		}
	}
	report(nil) // nothing is known
	d.indexed.Store(int32(indexing))
	report(context.DeadlineExceeded)
	report(nil)
	report(nil)
	d.indexed.Store(int32(indexed))
	report(nil)
	report(nil)
	if len(got) != 2 || got[0] != metav1.ConditionFalse || got[1] != metav1.ConditionTrue {
		t.Errorf("reported %v, want False, True", got)
	}
}
