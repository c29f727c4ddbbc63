package deliveries

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestDropInTime shows that a replica stops its work on a shard two thirds of the duration after it
// renewed the Lease, also if kube-apiserver stops responding without closing connections.
func TestDropInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answered = 3 // the list, the Lease of the replica, and that of the shard
		requests := 0
		client, err := coordinationclient.NewForConfig(&rest.Config{Host: "http://kube-apiserver", ContentConfig: rest.ContentConfig{ContentType: "application/json"}, QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if requests++; requests > answered {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			body := []byte(`{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{},"items":[]}`)
			if r.Method == http.MethodPost {
				body, _ = io.ReadAll(r.Body)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		began := time.Now()
		var started, stopped time.Duration
		l := &leases{
			client: client.Leases("paddock"), identity: "a", shards: 1, duration: 15 * time.Second,
			start: func(int, *heldLease) { started = time.Since(began) },
			stop: func(int) {
				stopped = time.Since(began)
				cancel()
			},
		}
		l.run(ctx)
		if started != 0 || stopped != 10*time.Second {
			t.Errorf("started after %s and stopped after %s, want 0 s and 10 s", started, stopped)
		}
	})
}
