package robustness

import (
	"context"
	"errors"
	"net/http"
	"sync"
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
	cancel    context.CancelFunc
}

func (t *faultyTransport) wrap(next http.RoundTripper) http.RoundTripper {
	t.next = next
	return t
}

// arm makes ready for a fault, if it is one for the transport. To hang up is to
// cancel the task.
func (t *faultyTransport) arm(f fault, cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.cut, t.armed, t.cancel = 0, 0, f, cancel
	if f.Do == lose || f.Do == hangUp { // the others are for the engine
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
	due, struck := t.due()
	if !struck {
		return response, nil
	}
	t.struck()
	idle(r.Context(), due.Delay) // others go on meanwhile
	_ = response.Body.Close()
	if due.Do == hangUp {
		t.cancel()
		return nil, context.Canceled
	}
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
func (t *faultyTransport) due() (fault, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return fault{}, false
	}
	if t.left--; t.left > 0 {
		return fault{}, false
	}
	t.cut = t.armed.More
	return t.armed, true
}
