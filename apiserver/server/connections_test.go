package server

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for a response, or for the end of a connection, on a busy machine.
const patience = 30 * time.Second

// serveBounded serves empty responses with the settings of the FHIR API, and returns its address.
func serveBounded(t *testing.T, all, perAddress int, change func(*http.Server)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := facadeServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	change(server)
	go func() { _ = server.Serve(limitConnections(listener, all, perAddress)) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// client is a connection over which a test writes bytes.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func dialFrom(t *testing.T, from, to string) *client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

// send writes a text and returns the status of the response. It returns 0 if the server closes the
// connection, and -1 if no response arrives in time.
func (c *client) send(text string, within time.Duration) int {
	if _, err := c.Write([]byte(text)); err != nil {
		return 0
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	answer, err := http.ReadResponse(c.answers, nil)
	if netErr := net.Error(nil); errors.As(err, &netErr) && netErr.Timeout() {
		return -1
	}
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	address := serveBounded(t, 0, 2, func(*http.Server) {})
	var open []*client
	for range 2 {
		open = append(open, dialFrom(t, "127.0.0.1", address))
		if status := open[len(open)-1].send(get, patience); status != http.StatusOK {
			t.Fatalf("connection below the limit: got status %d, want 200", status)
		}
	}
	if status := dialFrom(t, "127.0.0.1", address).send(get, patience); status != 0 {
		t.Errorf("third connection: got status %d, want it closed", status)
	}
	if status := dialFrom(t, "127.0.0.2", address).send(get, patience); status != http.StatusOK {
		t.Errorf("connection from another address: got status %d, want 200", status)
	}
	_ = open[0].Close()
	for deadline := time.Now().Add(patience); ; {
		if dialFrom(t, "127.0.0.1", address).send(get, patience) == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the closed connection still counts, want a new one to be served")
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	address := serveBounded(t, 1, 0, func(*http.Server) {})
	first := dialFrom(t, "127.0.0.1", address)
	if status := first.send(get, patience); status != http.StatusOK {
		t.Fatalf("first connection: got status %d, want 200", status)
	}
	second := dialFrom(t, "127.0.0.1", address)
	if status := second.send(get, 200*time.Millisecond); status != -1 {
		t.Errorf("connection above the limit: got status %d, want it to wait", status)
	}
	_ = first.Close()
	if status := second.send("", patience); status != http.StatusOK {
		t.Errorf("the same after another was closed: got status %d, want 200", status)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	address := serveBounded(t, 0, 0, func(*http.Server) {})
	long := fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 2*maxHeaderBytes))
	if status := dialFrom(t, "127.0.0.1", address).send(long, patience); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long header: got status %d, want 431", status)
	}
}

// TestSlowClientsLoseTheirConnection shortens the limits. TestFacadeServerHasLimits tests that they are
// set.
func TestSlowClientsLoseTheirConnection(t *testing.T) {
	const short = 200 * time.Millisecond
	address := serveBounded(t, 0, 0, func(s *http.Server) { s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = short, short, short })
	for name, text := range map[string]string{
		"in the header":    "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"before a request": "",
	} {
		slow := dialFrom(t, "127.0.0.1", address)
		if status := slow.send(text, patience); status != 0 && status != http.StatusRequestTimeout {
			t.Errorf("slow %s: got status %d, want 408 or a closed connection", name, status)
		}
	}
	// Here only IdleTimeout is short, so that the first request gets its response on a busy machine.
	idle := dialFrom(t, "127.0.0.1", serveBounded(t, 0, 0, func(s *http.Server) { s.IdleTimeout = short }))
	if status := idle.send(get, patience); status != http.StatusOK {
		t.Fatalf("first request: got status %d, want 200", status)
	}
	if status := idle.send("", patience); status != 0 {
		t.Errorf("idle connection: got status %d, want it closed", status)
	}
}

func TestFacadeServerHasLimits(t *testing.T) {
	s := facadeServer(http.NotFoundHandler())
	for name, limit := range map[string]time.Duration{
		"ReadHeaderTimeout": s.ReadHeaderTimeout, "ReadTimeout": s.ReadTimeout, "WriteTimeout": s.WriteTimeout, "IdleTimeout": s.IdleTimeout,
	} {
		if limit <= 0 || limit > 2*time.Minute {
			t.Errorf("%s = %s, want more than 0 and at most 2m", name, limit)
		}
	}
	if s.MaxHeaderBytes <= 0 {
		t.Errorf("MaxHeaderBytes = %d, want a limit", s.MaxHeaderBytes)
	}
}
