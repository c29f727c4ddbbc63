package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/limits"
)

// TestRequestsInflight has requests that do not end, and checks that further ones are refused, and
// that streams do not count.
func TestRequestsInflight(t *testing.T) {
	t.Parallel()
	running, end := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(withInflightLimit(limits.NewInflight(2), func(*http.Request, int, time.Duration) {}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var exceeded *limits.ExceededError
		if errors.As(refusal(r.Context()), &exceeded) {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		switch r.URL.Query().Get("kind") {
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		case "held":
		default:
			return
		}
		w.WriteHeader(http.StatusOK)
		running <- struct{}{}
		<-end
	})))
	get := func(kind string) int {
		response, err := server.Client().Get(server.URL + "/site/oak/fhir?kind=" + kind)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); err != nil { // it ends after the request has left
			t.Error(err)
		}
		return response.StatusCode
	}
	var held sync.WaitGroup
	hold := func(kind string) {
		held.Go(func() { get(kind) })
		<-running
	}
	t.Cleanup(server.Close)
	for range 5 {
		hold("stream")
	}
	hold("held")
	if got := get("short"); got != http.StatusOK {
		t.Errorf("%d next to streams and one request", got)
	}
	hold("held")
	if got := get("short"); got != http.StatusTooManyRequests {
		t.Errorf("%d at the limit", got)
	}
	close(end)
	held.Wait()
	if got := get("short"); got != http.StatusOK {
		t.Errorf("%d after all have ended", got)
	}
}

func TestAdmissionRefusesRequestsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	want := &limits.ExceededError{Policy: "server"}
	r := httptest.NewRequest(http.MethodGet, "/site/oak/fhir/Patient", http.NoBody)
	r = r.WithContext(context.WithValue(r.Context(), refusalKey{}, want))
	a := &admission{}
	if _, _, err := a.admitSite(r, "oak"); !errors.Is(err, want) {
		t.Errorf("a request with a caller: %v", err)
	}
	if _, err := a.find(r, "oak"); !errors.Is(err, want) {
		t.Errorf("a request without a caller: %v", err)
	}
}
