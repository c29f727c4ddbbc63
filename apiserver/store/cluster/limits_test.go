package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		mustWrite(t, site, noise("4", 10))
		refused(t, site, noise("1", 10), store.LimitError{Scope: store.LimitSite, What: "records", Max: 3}) // a tombstone is no room for its own record
		mustWrite(t, site, store.Op{Kind: store.Purge, Key: noise("4", 0).Key})
		mustWrite(t, site, noise("1", 10))
		if got := site.Stats().Records; got != 3 {
			t.Errorf("Stats count %d records, want 3", got)
		}
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
	t.Run("tombstones give way to new records", func(t *testing.T) {
		namespace, key := newSite(t)
		limits := small
		limits.MaxObjectBytes = 16 << 10 // so that tombstones have histories
		site := newEngine(t, cluster.Options{}).Open(namespace, key, limits)
		full := store.LimitError{Scope: store.LimitSite, What: "bytes", Max: 20 << 10}
		mustWrite(t, site, noise("1", 6000))
		mustWrite(t, site, noise("2", 6000))
		refused(t, site, noise("3", 7900), full)
		for round := range 5 { // each round leaves a tombstone whose history is as large as the record
			mustWrite(t, site, store.Op{Kind: store.Delete, Key: noise("2", 0).Key})
			mustWrite(t, site, noise(fmt.Sprint("new", round), 6000))
			mustWrite(t, site, store.Op{Kind: store.Delete, Key: noise(fmt.Sprint("new", round), 0).Key})
			mustWrite(t, site, noise("2", 6000))
		}
		if used := site.Stats(); used.Bytes > used.MaxBytes || used.Records != 2 {
			t.Errorf("stats %+v, want 2 records within the limit", used)
		}
		if _, err := site.Get(t.Context(), noise("new0", 0).Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the oldest tombstone: got %v, want ErrNotFound", err)
		}
		refused(t, site, noise("3", 7900), full) // live records do not give way
		if got, err := site.Get(t.Context(), noise("1", 0).Key); err != nil || got.Version != 1 {
			t.Errorf("got version %d, %v; want the first record unchanged", got.Version, err)
		}
	})
	t.Run("old versions give way to new records", func(t *testing.T) {
		namespace, key := newSite(t)
		engine := newEngine(t, cluster.Options{})
		limits := cluster.DefaultLimits
		site := engine.Open(namespace, key, limits)
		mustWrite(t, site, noise("1", 6000))
		mustWrite(t, site, noise("1", 10))
		mustWrite(t, site, noise("2", 500))
		mustWrite(t, site, noise("3", 500))
		mustWrite(t, site, noise("3", 500))
		limits.MaxBytes = site.Stats().Bytes
		site = engine.Open(namespace, key, limits)
		versions := func(id string) (numbers []int64) {
			page, err := site.History(t.Context(), store.HistoryQuery{Key: noise(id, 0).Key, Count: 10})
			if err != nil || page.Total != int64(len(page.Records)) {
				t.Errorf("history of %s: %d versions, total %d, error %v", id, len(page.Records), page.Total, err)
			}
			for _, r := range page.Records {
				numbers = append(numbers, r.Version)
			}
			return numbers
		}
		mustWrite(t, site, noise("2", 500)) // takes the room of the oldest version of the site
		got := [][]int64{versions("1"), versions("2"), versions("3")}
		if want := [][]int64{{2}, {2, 1}, {2, 1}}; !cmp.Equal(got, want) {
			t.Errorf("got versions %v, want %v", got, want)
		}
		if _, err := site.GetVersion(t.Context(), noise("1", 0).Key, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("version 1 of 1: got %v, want ErrNotFound", err)
		}
		page, err := site.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: "Patient"}, Count: 10})
		if err != nil || page.Total != 5 || len(page.Records) != 5 {
			t.Errorf("history of the type: %d versions, total %d, error %v; want 5", len(page.Records), page.Total, err)
		}
		if used := site.Stats(); used.Bytes > used.MaxBytes {
			t.Errorf("stats %+v, want them within the limit", used)
		}
		histories := recordsv1.RecordHistoryList{}
		if err := objects(t).List(t.Context(), &histories, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range histories.Items {
			if h := &histories.Items[i]; h.Spec.Record == "patient.1" && len(h.Spec.Versions) > 0 {
				t.Errorf("the history of 1 has %d versions in etcd, want none", len(h.Spec.Versions))
			}
		}
		mustWrite(t, site, noise("1", 20)) // the history goes on where it was cut
		if got, err := site.Get(t.Context(), noise("1", 0).Key); err != nil || got.Version != 3 {
			t.Errorf("got version %d, %v; want 3", got.Version, err)
		}
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

// TestLargeRecordsChange updates a record that is almost as large as a request to etcd.
func TestLargeRecordsChange(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key,
		cluster.Limits{MaxRecords: 10, MaxVersions: 5, MaxObjectBytes: 1 << 20, MaxBytes: 64 << 20})
	for _, bytes := range []int{900_000, 1_000_000, 500_000, 500_000, 1_000_000, 400_000, 1_000_000, 400_000, 10} {
		mustWrite(t, site, noise("rex", bytes))
	}
	if got := len(observe(t, site).Versions); got < 2 {
		t.Errorf("got %d versions, want the newest and a superseded one", got)
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
	statsOf := func(s store.Store) store.Stats {
		stats := s.Stats()
		stats.Counted = time.Time{} // each replica counts at another time
		return stats
	}
	want := statsOf(site)
	if want.Records != 1 || want.Bytes < 20*100 {
		t.Errorf("stats of the writer: %+v", want)
	}
	until(t, "stats on another replica", want, func() store.Stats { return statsOf(reader.Open(namespace, key, cluster.DefaultLimits)) })
	if got := statsOf(newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)); got != want {
		t.Errorf("stats of a new replica: %+v, want %+v", got, want)
	}
}
