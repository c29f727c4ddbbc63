package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRefusedBodies sends bodies over the limit as a client that writes the whole request before it
// reads the response. It pauses for longer than net/http waits for such a client by itself.
func TestRefusedBodies(t *testing.T) {
	const limit = 1 << 20
	large := strings.Repeat("a", limit+1)
	for name, test := range map[string]struct {
		header, body string
	}{
		"announced":            {"Content-Length: " + strconv.Itoa(len(large)) + "\r\n", large},
		"announced, twice":     {"Content-Length: " + strconv.Itoa(2*limit) + "\r\n", strings.Repeat("a", 2*limit)},
		"in chunks":            {"Transfer-Encoding: chunked\r\n", chunksOf(strings.Repeat("a", 2*limit))},
		"larger when inflated": {"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunksOf(gzipped(strings.Repeat("a", 20*limit)), strings.Repeat("b", limit))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, limit, time.Minute)
			sent := len(test.body) * 3 / 4 // the server refuses the body before it has the rest
			c.send(test.header + "\r\n" + test.body[:sent])
			time.Sleep(time.Second)
			c.send(test.body[sent:])
			if status := c.status(); status != http.StatusRequestEntityTooLarge {
				t.Errorf("status %d, want 413", status)
			}
		})
	}
}

// TestRefusedBodiesThatAreNotDrained checks that a refusal does not wait for bodies that are too large
// to be read, that the client would not send, or that do not arrive.
func TestRefusedBodiesThatAreNotDrained(t *testing.T) {
	const limit = 1 << 20
	for name, test := range map[string]struct {
		header  string
		timeout time.Duration
	}{
		"more than twice the limit": {"Content-Length: " + strconv.Itoa(2*limit+1) + "\r\n", time.Minute},
		"an expectation":            {"Content-Length: " + strconv.Itoa(limit+1) + "\r\nExpect: 100-continue\r\n", time.Minute},
		"a body that does not come": {"Content-Length: " + strconv.Itoa(limit+1) + "\r\n", 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, limit, test.timeout)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			c.send(test.header + "\r\n")
			if status := c.status(); status != http.StatusRequestEntityTooLarge {
				t.Errorf("status %d, want 413", status)
			}
		})
	}
}

// client is a connection to a server that reads a body.
type client struct {
	net.Conn
	t *testing.T
}

// dial starts a server whose requests end after a timeout and have bodies up to a limit, and sends it
// the first lines of a request.
func dial(t *testing.T, limit int64, timeout time.Duration) client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		var tooLarge *TooLargeError
		if _, err := ReadBody(w, r.WithContext(ctx), limit); errors.As(err, &tooLarge) {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		}
	}))
	t.Cleanup(server.Close)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	c := client{connection, t}
	c.send("POST / HTTP/1.1\r\nHost: h\r\n")
	return c
}

func (c client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// status returns the status of the next response, which may be an interim one.
func (c client) status() int {
	c.t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		c.t.Fatalf("read the response: %v", err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// chunksOf returns a chunked body.
func chunksOf(chunks ...string) string {
	var body strings.Builder
	for _, chunk := range append(chunks, "") {
		body.WriteString(strconv.FormatInt(int64(len(chunk)), 16) + "\r\n" + chunk + "\r\n")
	}
	return body.String()
}
