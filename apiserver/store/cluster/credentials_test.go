package cluster_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// TestExpiredCredentials shows that a site is unavailable, and nothing is written, while kube-apiserver
// does not accept the credentials of the process. When it does, the site is served without a restart.
func TestExpiredCredentials(t *testing.T) {
	namespace, key := newSite(t)
	stranger, err := rest.TransportFor(rest.AnonymousClientConfig(control.Config()))
	if err != nil {
		t.Fatal(err)
	}
	var expired atomic.Bool
	site := newInterposedEngine(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if !expired.Load() {
			return next.RoundTrip(r)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer expired")
		return stranger.RoundTrip(r)
	}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, site, rex(1))
	expired.Store(true)
	if _, err := site.Write(t.Context(), []store.Op{rex(2)}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("write: %v, want ErrUnavailable", err)
	}
	expired.Store(false)
	if record, err := site.Get(t.Context(), rex(1).Key); err != nil || record.Version != 1 {
		t.Errorf("record %v, error %v, want version 1", record, err)
	}
	if result := mustWrite(t, site, rex(3)); result.Record.Version != 2 {
		t.Errorf("the next write makes version %d, want 2", result.Record.Version)
	}
}

// TestClockBehind shows what a poll by time misses: a record of a process whose clock is behind has a
// time that the poll has passed. The order of the versions of one record is kept.
func TestClockBehind(t *testing.T) {
	namespace, key := newSite(t)
	ahead := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	behind := newEngine(t, cluster.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }}).Open(namespace, key, cluster.DefaultLimits)
	passed := mustWrite(t, ahead, rex(1)).Record.Updated
	bella := rex(2)
	bella.Key.ID = "bella"
	if late := mustWrite(t, behind, bella).Record.Updated; !late.Before(passed) {
		t.Errorf("a record of the process that is behind is of %s, the poll has passed %s", late, passed)
	}
	until(t, "version of rex at the other process", int64(1), func() int64 {
		record, _ := behind.Get(t.Context(), rex(1).Key)
		return record.Version
	})
	next := mustWrite(t, behind, rex(3)).Record
	if next.Version != 2 || !next.Updated.After(passed) {
		t.Errorf("version %d of %s, want version 2 after %s", next.Version, next.Updated, passed)
	}
}
