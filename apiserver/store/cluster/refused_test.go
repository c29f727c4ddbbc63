package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// TestRefusedClaim shows that a create whose claim is refused returns only the ClaimError, even if
// the removal of its placeholder fails.
func TestRefusedClaim(t *testing.T) {
	for name, trouble := range map[string]func(hangUp func(), next http.RoundTripper, r *http.Request) (*http.Response, error){
		"the connection is cut": func(func(), http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, errors.New("the connection was cut")
		},
		"the client hangs up": func(hangUp func(), next http.RoundTripper, r *http.Request) (*http.Response, error) {
			hangUp()
			return next.RoundTrip(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace, key := newSite(t)
			rival := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
			mustWrite(t, rival, claimed(rex(1), "line"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var cleared atomic.Int64
			writer := newInterposedEngine(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				// The result of the second attempt is returned.
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/records/") && cleared.Add(1) == 2 {
					return trouble(cancel, next, r)
				}
				return next.RoundTrip(r)
			}).Open(namespace, key, cluster.DefaultLimits)
			bella := claimed(rex(2), "line")
			bella.Key.ID = "bella"
			_, err := writer.Write(ctx, []store.Op{bella})
			var held *store.ClaimError
			if !errors.As(err, &held) || held.Holder.ID != "rex" {
				t.Errorf("got %v, want a ClaimError that names rex", err)
			}
			if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
				t.Errorf("got %v, which says too that the write may have happened", err)
			}
			if cleared.Load() != 2 {
				t.Errorf("a placeholder was cleared away %d times, want 2", cleared.Load())
			}
			bella = rex(3)
			bella.Key.ID = "bella"
			if result := mustWrite(t, writer, bella); result.Record.Version != 1 {
				t.Errorf("the name is not free: its first write makes version %d", result.Record.Version)
			}
		})
	}
}
