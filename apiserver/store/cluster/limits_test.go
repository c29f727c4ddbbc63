package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// noise returns a put of a body that cannot be compressed.
func noise(id string, bytes int) store.Op {
	op := rex(0)
	op.Key.ID = id
	text := make([]byte, bytes)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[rand.IntN(64)]
	}
	op.Body.JSON = fmt.Appendf(nil, `{"resourceType":"Patient","id":"","meta":{},"a":"%s"}`, text)
	return op
}

func refused(t *testing.T, s store.Store, op store.Op, want store.LimitError) {
	t.Helper()
	_, err := s.Write(t.Context(), []store.Op{op})
	var limit *store.LimitError
	if !errors.As(err, &limit) || *limit != want {
		t.Fatalf("got %v, want %v", err, &want)
	}
}

func TestLimits(t *testing.T) {
	small := cluster.Limits{MaxRecords: 3, MaxVersions: 2, MaxObjectBytes: 8 << 10, MaxBytes: 20 << 10}
	t.Run("records of a site", func(t *testing.T) {
		namespace, key := newSite(t)
		site := newEngine(t, cluster.Options{}).Open(namespace, key, small)
		for i := range 3 {
			mustWrite(t, site, noise(fmt.Sprint(i), 10))
		}
		refused(t, site, noise("4", 10), store.LimitError{Scope: store.LimitSite, What: "records", Max: 3})
		mustWrite(t, site, noise("1", 20)) // an update is no new record
		mustWrite(t, site, store.Op{Kind: store.Delete, Key: noise("1", 0).Key})
		refused(t, site, noise("4", 10), store.LimitError{Scope: store.LimitSite, What: "records", Max: 3})
		mustWrite(t, site, store.Op{Kind: store.Purge, Key: noise("1", 0).Key})
		mustWrite(t, site, noise("4", 10))
	})
	t.Run("bytes of a record", func(t *testing.T) {
		namespace, key := newSite(t)
		site := newEngine(t, cluster.Options{}).Open(namespace, key, small)
		refused(t, site, noise("1", 9000), store.LimitError{Scope: store.LimitRecord, What: "bytes", Max: 8 << 10})
	})
	t.Run("bytes of a site", func(t *testing.T) {
		namespace, key := newSite(t)
		site := newEngine(t, cluster.Options{}).Open(namespace, key, small)
		mustWrite(t, site, noise("1", 6000))
		mustWrite(t, site, noise("2", 6000))
		refused(t, site, noise("3", 6000), store.LimitError{Scope: store.LimitSite, What: "bytes", Max: 20 << 10})
		mustWrite(t, site, store.Op{Kind: store.Delete, Key: noise("2", 0).Key})
	})
	t.Run("of all sites together", func(t *testing.T) {
		namespace, key := newSite(t)
		full := newEngine(t, cluster.Options{MaxRecords: 1})
		site := full.Open(namespace, key, cluster.DefaultLimits)
		if _, err := site.Write(t.Context(), []store.Op{noise("1", 10)}); err == nil {
			refused(t, site, noise("2", 10), store.LimitError{Scope: store.LimitCluster, What: "records", Max: 1})
		}
		refused(t, site, noise("3", 10), store.LimitError{Scope: store.LimitCluster, What: "records", Max: 1})
	})
}

// TestHistoryIsBounded tests which versions are kept, and the size of the object in etcd.
func TestHistoryIsBounded(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key,
		cluster.Limits{MaxRecords: 10, MaxVersions: 5, MaxObjectBytes: 16 << 10, MaxBytes: 1 << 20})
	for i := range 12 {
		mustWrite(t, site, rex(i))
	}
	if got := len(observe(t, site).Versions); got != 6 {
		t.Errorf("got %d versions, want the newest and 5", got)
	}
	for range 4 {
		mustWrite(t, site, noise("rex", 5000))
	}
	if got := len(observe(t, site).Versions); got != 3 {
		t.Errorf("got %d versions of 5 kB, want the newest and 2 in 16 KiB", got)
	}
	// Versions that a write drops are removed by the next one.
	mustWrite(t, site, rex(100))
	mustWrite(t, site, rex(101))
	shown := len(observe(t, site).Versions)
	histories := recordsv1.RecordHistoryList{}
	reader := objects(t)
	if err := reader.List(t.Context(), &histories, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(histories.Items) != 1 || len(histories.Items[0].Spec.Versions) > shown {
		t.Errorf("%d histories, the first with %d versions; want one with at most %d",
			len(histories.Items), len(histories.Items[0].Spec.Versions), shown)
	}
}

// TestStatsCountHistory compares the Stats of two replicas with those of a new one.
func TestStatsCountHistory(t *testing.T) {
	namespace, key := newSite(t)
	writer, reader := newEngine(t, cluster.Options{}), newEngine(t, cluster.Options{})
	site := writer.Open(namespace, key, cluster.DefaultLimits)
	for i := range 30 {
		mustWrite(t, site, rex(i))
	}
	mustWrite(t, site, noise("bella", 5000))
	mustWrite(t, site, store.Op{Kind: store.Purge, Key: noise("bella", 0).Key})
	want := site.Stats()
	if want.Records != 1 || want.Bytes < 20*100 {
		t.Errorf("stats of the writer: %+v", want)
	}
	deadline := time.Now().Add(5 * time.Second)
	for reader.Open(namespace, key, cluster.DefaultLimits).Stats() != want {
		if time.Now().After(deadline) {
			t.Fatalf("stats: %+v on another replica, %+v on the writer's", reader.Open(namespace, key, cluster.DefaultLimits).Stats(), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits).Stats(); got != want {
		t.Errorf("stats of a new replica: %+v, want %+v", got, want)
	}
}
