package cluster_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// objects returns a client that reads without the engine.
func objects(t *testing.T) client.Client {
	t.Helper()
	reader, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// newReader returns the client. It makes it once for all tests.
var newReader = sync.OnceValues(func() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := recordsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(control.Config(), client.Options{Scheme: scheme})
})

// TestSweep shows that a replica that starts an hour later removes what crashed writers left, and
// an expired claim.
func TestSweep(t *testing.T) {
	namespace, key := newSite(t)
	crashing := newCrashingSite(t, namespace, key)
	mustWrite(t, crashing, rex(1))
	mustWrite(t, crashing, rex(2))
	crashing.write(t, store.Op{Kind: store.Purge, Key: rex(0).Key}, 1)
	expiring := rex(1)
	expiring.Key.ID = "expiring"
	expiring.Claims = []store.Claim{{Line: "short", Expires: time.Now().Add(time.Minute)}, {Line: "long"}}
	mustWrite(t, crashing, expiring)
	orphan := &recordsv1.RecordHistory{Spec: recordsv1.RecordHistorySpec{SiteKey: key, Record: "patient.expiring", Lineage: "another"}}
	orphan.Name, orphan.Namespace = "patient.expiring.another", namespace
	reader := objects(t)
	if err := reader.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	count := func(list client.ObjectList, items func() int) int {
		if err := reader.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		return items()
	}
	left := func() [3]int {
		var records recordsv1.RecordList
		var histories recordsv1.RecordHistoryList
		var claims recordsv1.RecordClaimList
		return [3]int{
			count(&records, func() int { return len(records.Items) }),
			count(&histories, func() int { return len(histories.Items) }),
			count(&claims, func() int { return len(claims.Items) }),
		}
	}
	if before := left(); before != [3]int{2, 2, 2} {
		t.Fatalf("%d records, histories and claims before the sweep, want 2 each", before)
	}
	swept := newEngine(t, cluster.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	until(t, "records, histories and claims after the sweep", [3]int{1, 0, 1}, left)
	rival := rex(1)
	rival.Key.ID = "rival"
	_, err := swept.Open(namespace, key, cluster.DefaultLimits).Write(t.Context(), []store.Op{claimed(rival, "long")})
	var held *store.ClaimError
	if !errors.As(err, &held) {
		t.Errorf("an active claim was removed: %v", err)
	}
}
