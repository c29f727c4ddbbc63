package cluster_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/audit/audittest"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

func TestAudit(t *testing.T) {
	first, second := newEngine(t, cluster.Options{}), newEngine(t, cluster.Options{})
	audittest.Run(t, func(t *testing.T) (audit.Storage, audit.Storage) {
		namespace, key := newSite(t)
		return first.Open(namespace, key, cluster.DefaultLimits).Audit(), second.Open(namespace, key, cluster.DefaultLimits).Audit()
	})
}

// TestAuditRecovers shows that entries can be appended after a segment of this replica was deleted.
func TestAuditRecovers(t *testing.T) {
	namespace, key := newSite(t)
	log := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits).Audit()
	entries := []*audit.Entry{audittest.Entry(0, nil)}
	if err := log.Append(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	segments := segmentsIn(t, namespace)
	if err := segments.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	again := []*audit.Entry{audittest.Entry(0, nil)}
	if err := log.Append(t.Context(), again); err == nil {
		t.Fatal("Append to a deleted segment succeeded, want an error")
	}
	if err := log.Append(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if found, err := log.Search(t.Context(), audit.Query{Count: 10}); err != nil || len(found) != 1 || found[0].ID != again[0].ID {
		t.Errorf("%d entries, error %v", len(found), err)
	}
}

// TestAuditOfTwoKeys shows that a log does not read or trim entries of another site key in the
// namespace.
func TestAuditOfTwoKeys(t *testing.T) {
	namespace, key := newSite(t)
	engine := newEngine(t, cluster.Options{})
	log, other := engine.Open(namespace, key, cluster.DefaultLimits).Audit(), engine.Open(namespace, key+"-retained", cluster.DefaultLimits).Audit()
	for _, each := range []audit.Storage{log, other} {
		if err := each.Append(t.Context(), []*audit.Entry{audittest.Entry(100*time.Hour, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Trim(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	for each, want := range map[audit.Storage]int{log: 0, other: 1} {
		if found, err := each.Search(t.Context(), audit.Query{Count: 10}); err != nil || len(found) != want {
			t.Errorf("%d entries, want %d, error %v", len(found), want, err)
		}
	}
}

// TestAuditIsBounded shows that Append fails at MaxAuditBytes, and works again after segments were
// deleted.
func TestAuditIsBounded(t *testing.T) {
	namespace, key := newSite(t)
	engine := newEngine(t, cluster.Options{})
	log := engine.Open(namespace, key, cluster.DefaultLimits).Audit()
	if err := log.Append(t.Context(), []*audit.Entry{audittest.Entry(0, nil)}); err != nil {
		t.Fatal(err)
	}
	segments := segmentsIn(t, namespace)
	list, err := segments.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, error %v", list, err)
	}
	full := &list.Items[0]
	full.SetAnnotations(map[string]string{"records.paddock.health/size": "33554432"})
	if _, err := segments.Update(t.Context(), full, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	replica := engine.Open(namespace, key, cluster.DefaultLimits).Audit()
	for range 2 {
		if err := replica.Append(t.Context(), []*audit.Entry{audittest.Entry(0, nil)}); err == nil {
			t.Fatal("Append to a full log succeeded, want an error")
		}
	}
	if err := segments.Delete(context.Background(), full.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := replica.Append(t.Context(), []*audit.Entry{audittest.Entry(0, nil)}); err != nil {
		t.Errorf("Append after segments were deleted: got %v, want no error", err)
	}
}

func segmentsIn(t *testing.T, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(control.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "records.paddock.health", Version: "v1alpha1", Resource: "auditsegments"}).Namespace(namespace)
}
