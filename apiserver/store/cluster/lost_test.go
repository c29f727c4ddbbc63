package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// transport handles a request between the engine and the API server.
type transport func(next http.RoundTripper, r *http.Request) (*http.Response, error)

type interposed struct {
	http.RoundTripper
	transport
}

func (i interposed) RoundTrip(r *http.Request) (*http.Response, error) {
	return i.transport(i.RoundTripper, r)
}

// newInterposedEngine starts an engine that sends its requests through a transport.
func newInterposedEngine(t *testing.T, through transport) *cluster.Cluster {
	t.Helper()
	config := rest.CopyConfig(control.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return interposed{next, through} })
	engine, err := cluster.New(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go engine.Run(t.Context())
	select {
	case <-engine.Synced():
	case <-time.After(30 * time.Second):
		t.Fatal("the index was not built within 30 s")
	}
	return engine
}

func changesRecord(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/records/")
}

// TestLostAnswer shows that a write is not repeated if its answer was lost and it was superseded
// before the engine could check it.
func TestLostAnswer(t *testing.T) {
	for name, op := range map[string]store.Op{
		"of an update": rex(2),
		"of a delete":  {Kind: store.Delete, Key: rex(0).Key, Method: store.MethodDelete},
	} {
		t.Run(name, func(t *testing.T) {
			namespace, key := newSite(t)
			rival := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
			mustWrite(t, rival, rex(1))
			var lost atomic.Bool
			writer := newInterposedEngine(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err != nil || !changesRecord(r) || !lost.CompareAndSwap(false, true) {
					return response, err
				}
				_ = response.Body.Close()
				mustWrite(t, rival, rex(3))
				return nil, errors.New("the connection was cut")
			}).Open(namespace, key, cluster.DefaultLimits)
			if _, err := writer.Write(t.Context(), []store.Op{op}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable, because the result is unknown", err)
			}
			if seen := observe(t, rival); len(seen.Versions) != 3 {
				t.Errorf("want three versions, got %v", seen.Versions)
			}
		})
	}
}

// TestUnansweredClaim shows that a write that may have happened keeps the claims in its record.
func TestUnansweredClaim(t *testing.T) {
	for name, hangUp := range map[string]bool{"lost": false, "hung up on": true} {
		t.Run(name, func(t *testing.T) {
			namespace, key := newSite(t)
			rival := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
			mustWrite(t, rival, rex(1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var left atomic.Int64 // requests that get nowhere: the answer, and the look for it
			left.Store(2)
			var cut atomic.Bool
			writer := newInterposedEngine(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if cut.Load() && strings.Contains(r.URL.Path, "/records/") && left.Add(-1) >= 0 {
					return nil, errors.New("the connection was cut")
				}
				response, err := next.RoundTrip(r)
				if err != nil || !changesRecord(r) || !cut.CompareAndSwap(false, true) {
					return response, err
				}
				_ = response.Body.Close()
				if hangUp {
					cancel()
					return nil, context.Canceled
				}
				return nil, errors.New("the connection was cut")
			}).Open(namespace, key, cluster.DefaultLimits)
			if _, err := writer.Write(ctx, []store.Op{claimed(rex(2), "line")}); err == nil {
				t.Error("the answer was not lost")
			}
			if seen := observe(t, rival); seen.Version != 2 {
				t.Fatalf("the write did not happen: %+v", seen)
			}
			bella := claimed(rex(3), "line")
			bella.Key.ID = "bella"
			_, err := rival.Write(t.Context(), []store.Op{bella})
			var held *store.ClaimError
			if !errors.As(err, &held) || held.Holder.ID != "rex" {
				t.Errorf("got %v, want a ClaimError that names rex", err)
			}
		})
	}
}
