// Package localreceiver runs a server on this machine that receives webhooks.
package localreceiver

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// Delivery is a request as the receiver got it.
type Delivery struct {
	// At is when the whole request had arrived.
	At     time.Time
	Header http.Header
	Body   []byte
	// Event is Body, parsed. It is nil if Body is not a JSON object.
	Event map[string]any
}

// Receiver stores the deliveries that it gets until Take returns them. It is safe for concurrent use.
type Receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []Delivery
	status int
}

// Start starts a receiver that answers with 204 until Answer says otherwise. Close ends it.
func Start() *Receiver { return start(httptest.NewTLSServer) }

// StartPlain starts a receiver like that of Start, but without TLS. It has no certificate, so its
// CABundle panics.
func StartPlain() *Receiver { return start(httptest.NewServer) }

func start(serve func(http.Handler) *httptest.Server) *Receiver {
	r := &Receiver{status: http.StatusNoContent}
	r.Server = serve(http.HandlerFunc(r.serve))
	return r
}

// StartAt starts a receiver with the given listener and certificate. Close closes the listener, too.
func StartAt(listener net.Listener, certificate tls.Certificate) *Receiver {
	r := &Receiver{status: http.StatusNoContent}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	_ = r.Listener.Close() // the listener that httptest has made
	r.Listener, r.TLS = listener, &tls.Config{Certificates: []tls.Certificate{certificate}}
	r.StartTLS()
	return r
}

func (r *Receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	got := Delivery{At: time.Now(), Header: request.Header.Clone(), Body: body}
	_ = json.Unmarshal(body, &got.Event) // Event stays nil for a body that is not JSON
	r.mu.Lock()
	r.got = append(r.got, got)
	status := r.status
	r.mu.Unlock()
	w.WriteHeader(status)
}

// Answer sets the status of the answers from now on.
func (r *Receiver) Answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// Where returns the deliveries that match and that Take has not returned, in the order in which
// they came.
func (r *Receiver) Where(match func(Delivery) bool) []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.got), func(d Delivery) bool { return !match(d) })
}

// Take returns the deliveries that came since the last call, and forgets them.
func (r *Receiver) Take() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// About returns the deliveries of events with a subject that Take has not returned, in the order in
// which they came.
func (r *Receiver) About(subject string) []Delivery {
	return r.Where(func(d Delivery) bool { return d.Event["subject"] == subject })
}

// CABundle returns the receiver's certificate as spec.caBundle of a Webhook has it.
func (r *Receiver) CABundle() string { return caBundle(r.Server) }

func caBundle(of *httptest.Server) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate().Raw}))
}
