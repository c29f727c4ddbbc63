package robustness

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// faultyTransport loses the answer of a request that changes something, after the
// cluster has done what was asked.
type faultyTransport struct {
	next   http.RoundTripper
	struck func()

	mu    sync.Mutex
	left  int
	delay time.Duration
}

func (t *faultyTransport) wrap(next http.RoundTripper) http.RoundTripper {
	t.next = next
	return t
}

// arm makes ready for a fault, if it is one for the transport.
func (t *faultyTransport) arm(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.delay = 0, f.Delay
	if f.Do == lose {
		t.left = f.Nth
	}
}

var errLost = errors.New("the connection was cut")

// RoundTrip implements http.RoundTripper.
func (t *faultyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if r.Method == http.MethodGet || err != nil || !t.due() {
		return response, err
	}
	t.struck()
	idle(r.Context(), t.delay) // others go on meanwhile
	_ = response.Body.Close()
	return nil, errLost
}

func (t *faultyTransport) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return false
	}
	t.left--
	return t.left == 0
}
