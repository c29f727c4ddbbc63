package localreceiver

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// Gigabyte is how many bytes AnswerGigabyte and AnswerGigabyteOfHeader try to send.
const Gigabyte = 1 << 30

// Hostile is an HTTPS server that does not answer as a receiver of webhooks should.
type Hostile struct {
	*httptest.Server
	// Requests counts the requests that arrived.
	Requests atomic.Int64
	// Written counts the bytes of bodies and headers that AnswerGigabyte and
	// AnswerGigabyteOfHeader could send. It includes what is in buffers of the operating system.
	Written atomic.Int64
	// Sending counts the responses of AnswerGigabyte and AnswerGigabyteOfHeader that have not ended.
	Sending atomic.Int64
}

// Misbehaviour answers a request whose body has been read.
type Misbehaviour func(h *Hostile, w http.ResponseWriter, r *http.Request)

// StartHostile starts a hostile receiver. Close ends it.
func StartHostile(answer Misbehaviour) *Hostile { return startHostile(answer, false) }

// StartHostileHTTP2 starts a hostile receiver that prefers HTTP/2.
func StartHostileHTTP2(answer Misbehaviour) *Hostile { return startHostile(answer, true) }

func startHostile(answer Misbehaviour, http2 bool) *Hostile {
	h := &Hostile{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Requests.Add(1)
		// net/http notices that a client has closed the connection only after the body was read.
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			answer(h, w, r)
		}
	}))
	h.EnableHTTP2 = http2
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // senders that refuse the certificate are expected
	h.StartTLS()
	return h
}

// Close ends the receiver and the requests that it has not answered.
func (h *Hostile) Close() {
	h.CloseClientConnections()
	h.Server.Close()
}

// CABundle returns the receiver's certificate as spec.caBundle of a Webhook has it.
func (h *Hostile) CABundle() string { return caBundle(h.Server) }

// AnswerNothing waits until the sender gives up.
func AnswerNothing(_ *Hostile, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// AnswerHeaderOnly sends a header with the status 200, then waits until the sender gives up.
func AnswerHeaderOnly(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "2")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // fails when the sender has left
	<-r.Context().Done()
}

// AnswerStatus returns a Misbehaviour that answers with a status and, unless name is empty, with a
// header field.
func AnswerStatus(status int, name, value string) Misbehaviour {
	return func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
		if name != "" {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
	}
}

// AnswerGigabyte answers with the status 200 and a gigabyte, until the sender closes the connection.
func AnswerGigabyte(h *Hostile, w http.ResponseWriter, _ *http.Request) { h.pour(w, "") }

// AnswerGigabyteOfHeader answers with a header of a gigabyte, until the sender closes the
// connection. It needs HTTP/1.1.
func AnswerGigabyteOfHeader(h *Hostile, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	h.pour(conn, "HTTP/1.1 200 OK\r\nX-Filler: ")
}

// pour writes a gigabyte after a prefix, or as much of it as the sender takes.
func (h *Hostile) pour(to io.Writer, prefix string) {
	h.Sending.Add(1)
	defer h.Sending.Add(-1)
	if _, err := io.WriteString(to, prefix); err != nil {
		return
	}
	// A chunk is smaller than what a sender reads before it closes the connection, so that some chunks
	// are counted. A Write that a reset interrupts returns 0, even if all its bytes have arrived.
	chunk := bytes.Repeat([]byte("x"), 1<<10)
	for written := 0; written < Gigabyte; written += len(chunk) {
		n, err := to.Write(chunk)
		h.Written.Add(int64(n))
		if err != nil {
			return
		}
	}
}
