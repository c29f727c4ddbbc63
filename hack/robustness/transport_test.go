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

	mu sync.Mutex
	// left counts the requests to the one whose answer is lost, cut those after it
	// that get nowhere.
	left, cut int
	armed     fault
}

func (t *faultyTransport) wrap(next http.RoundTripper) http.RoundTripper {
	t.next = next
	return t
}

// arm makes ready for a fault, if it is one for the transport.
func (t *faultyTransport) arm(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.cut, t.armed = 0, 0, f
	if f.Do == lose {
		t.left = f.Nth
	}
}

var errLost = errors.New("the connection was cut")

// RoundTrip implements http.RoundTripper.
func (t *faultyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.isCut() {
		return nil, errLost
	}
	response, err := t.next.RoundTrip(r)
	if r.Method == http.MethodGet || err != nil {
		return response, err
	}
	delay, due := t.due()
	if !due {
		return response, nil
	}
	t.struck()
	idle(r.Context(), delay) // others go on meanwhile
	_ = response.Body.Close()
	return nil, errLost
}

func (t *faultyTransport) isCut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut == 0 {
		return false
	}
	t.cut--
	return true
}

// due counts a request that changes something. The answer to the last one is lost.
func (t *faultyTransport) due() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return 0, false
	}
	if t.left--; t.left > 0 {
		return 0, false
	}
	t.cut = t.armed.More
	return t.armed.Delay, true
}
