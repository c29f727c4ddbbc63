package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

func TestReader(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   []message
	}{
		"blocks, comments and keep-alives": {
			"id: 1\n\n: alive\nid: 2\n\nid: 3\nevent: delivery\ndata: {}\n\n",
			[]message{{id: "1"}, {id: "2"}, {"3", "delivery", "{}"}},
		},
		"an id stays, a name does not":   {"id:1\nevent:a\ndata:x\n\ndata:  y\n\n", []message{{"1", "a", "x"}, {"1", "", " y"}}},
		"several lines of data":          {"data: a\ndata\ndata:b: c\n\n", []message{{"", "", "a\n\nb: c"}}},
		"ends of lines":                  {"id: 1\r\ndata: a\r\n\r\nid: 2\rdata: b\r\r", []message{{"1", "", "a"}, {"2", "", "b"}}},
		"a name without data is nothing": {"event: a\n\ndata: b\n\n", []message{{"", "", "b"}}},
		"an id with NUL is none":         {"id: 1\n\nid: 2\x00\ndata: a\n\n", []message{{id: "1"}, {"1", "", "a"}}},
		"unknown fields":                 {"retry: 5\nother\ndata: a\n\n", []message{{"", "", "a"}}},
		"a block that is cut off":        {"data: a\n\ndata: b\n", []message{{"", "", "a"}}},
		"a line that is cut off":         {"data: a\n\nid: 7", []message{{"", "", "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(&byteByByte{test.stream})
			var got []message
			for {
				m, err := r.next(func() {})
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(message{})); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

type byteByByte struct{ left string }

func (b *byteByByte) Read(into []byte) (int, error) {
	if b.left == "" {
		return 0, io.EOF
	}
	n := copy(into[:1], b.left)
	b.left = b.left[n:]
	return n, nil
}

// sites answers one request for a stream after the other, and notes what they continue from.
type sites struct {
	answers []func(w http.ResponseWriter)

	mu    sync.Mutex
	asked []string
}

func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, r.Header.Get("Authorization")+" "+r.Header.Get("Last-Event-ID"))
	s.mu.Unlock()
	s.answers[n](w)
}

func streaming(blocks ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Join(blocks, "")) }
}

func refusing(status int, header, value, detail string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set(header, value)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"detail":%q}`, detail)
	}
}

func block(id, event string) string {
	return fmt.Sprintf("id: %s\nevent: delivery\ndata: {\"eventId\":%q,\"eventType\":\"user.created\",\"subject\":\"Practitioner/1\",\"body\":\"{\\\"id\\\": %s}\\n\"}\n\n", id, event, event)
}

// TestRelay forwards each delivery once over several connections.
func TestRelay(t *testing.T) {
	secret := signing.NewShared()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("delivery %s: %v, header %v", body, err, r.Header)
		}
		got = append(got, r.Header.Get("webhook-id")+" "+string(body))
		if r.Header.Get("webhook-id") == "e2" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	site := &sites{answers: []func(http.ResponseWriter){
		streaming("id: 0-1\n\n", block("0-2", "e1"), block("0-3", "e2"), "id: 0-4\nevent: delivery\n"),
		refusing(http.StatusServiceUnavailable, "Retry-After", "0", "the storage is away"),
		streaming(block("0-4", "e3"), "id: 0-9\nevent: delivery\ndata: {\"eventId\":\"e4\",\"eventType\":\"user.created\"}\n\n", ": alive\nid: 0-10\n\n"),
		refusing(http.StatusForbidden, "Content-Type", "application/problem+json", "you may not create webhooks/deliveries"),
	}}
	server := httptest.NewServer(site)
	defer server.Close()
	tokens := 0
	key, err := signing.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := New(Config{
		Stream: server.URL, ForwardTo: receiver.URL + "/hook", Key: key, Out: &out,
		Token: func() (string, error) { tokens++; return fmt.Sprint("t", tokens), nil },
	})
	err = r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "403 Forbidden: you may not create webhooks/deliveries") {
		t.Errorf("ended with %v", err)
	}
	if diff := cmp.Diff([]string{"e1 {\"id\": e1}\n", "e2 {\"id\": e2}\n", "e3 {\"id\": e3}\n"}, got); diff != "" {
		t.Errorf("forwarded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Bearer t1 ", "Bearer t2 0-3", "Bearer t3 0-3", "Bearer t4 0-10"}, site.asked); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
	if r.LastEventID() != "0-10" {
		t.Errorf("last id %s", r.LastEventID())
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "user.created") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{
		`^[0-9:]{8} user.created Practitioner/1 e1 200 [0-9.]+m?s$`, `^[0-9:]{8} user.created Practitioner/1 e2 500 [0-9.]+m?s$`,
		`^[0-9:]{8} user.created Practitioner/1 e3 200 [0-9.]+m?s$`, `^[0-9:]{8} user.created - e4 not forwarded: `,
	}
	if !slices.EqualFunc(want, lines, func(pattern, line string) bool { return regexp.MustCompile(pattern).MatchString(line) }) {
		t.Errorf("printed:\n%s", out.String())
	}
}

// TestReceiverIsAway goes on with the next delivery.
func TestReceiverIsAway(t *testing.T) {
	receiver := httptest.NewServer(http.NotFoundHandler())
	receiver.Close()
	site := &sites{answers: []func(http.ResponseWriter){
		streaming(block("0-2", "e1"), block("0-3", "e2")), refusing(http.StatusNotFound, "A", "b", "there is no such record"),
	}}
	server := httptest.NewServer(site)
	defer server.Close()
	key, err := signing.ParseKey(signing.NewShared())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := New(Config{Stream: server.URL, ForwardTo: receiver.URL, Key: key, Out: &out, Token: func() (string, error) { return "t", nil }})
	if err := r.Run(t.Context()); err == nil {
		t.Error("a webhook that does not exist ends nothing")
	}
	if n := strings.Count(out.String(), "connection refused"); n != 2 {
		t.Errorf("%d lines of failures:\n%s", n, out.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ended); err != nil {
		t.Errorf("ended by the caller with %v", err)
	}
}

// TestControlCharacters has a site that sends terminal sequences and line ends.
func TestControlCharacters(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()
	const bad = "\\u001b]0;x\\u0007\\r\\n\\u009b2J"
	site := &sites{answers: []func(http.ResponseWriter){
		streaming("id: 0-2\nevent: delivery\ndata: {\"eventId\":\"e1" + bad + "\",\"eventType\":\"user.created" + bad + "\",\"subject\":\"S" + bad + "\",\"body\":\"{}\"}\n\n"),
		refusing(http.StatusServiceUnavailable, "Retry-After", "0", "away\u009b2J"), refusing(http.StatusForbidden, "A", "b", "no"),
	}}
	server := httptest.NewServer(site)
	defer server.Close()
	key, err := signing.ParseKey(signing.NewShared())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := New(Config{Stream: server.URL, ForwardTo: receiver.URL, Key: key, Out: &out, Token: func() (string, error) { return "t", nil }})
	if err := r.Run(t.Context()); err == nil {
		t.Error("a refused stream ends nothing")
	}
	const safe = " ]0;x    2J"
	if !strings.Contains(out.String(), "user.created"+safe+" S"+safe+" e1"+safe+" ") || !strings.Contains(out.String(), "away 2J; connecting") {
		t.Errorf("printed %q", out.String())
	}
	for line := range strings.Lines(out.String()) {
		if !regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2} [^\x00-\x1f\x7f-\x9f]+\n$`).MatchString(line) {
			t.Errorf("printed the line %q", line)
		}
	}
}

// TestRetryAfter shows how long a Relay waits after a response other than 200, and which ones end it.
func TestRetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		after  string
		wait   time.Duration
		ends   bool
	}{
		"later":                    {http.StatusServiceUnavailable, "7", 7 * time.Second, false},
		"too many requests":        {http.StatusTooManyRequests, "2", 2 * time.Second, false},
		"much later":               {http.StatusServiceUnavailable, "86400", maxPause, false},
		"very much later":          {http.StatusServiceUnavailable, "99999999999999999999", maxPause, false},
		"a negative number":        {http.StatusServiceUnavailable, "-5", 0, false},
		"a date":                   {http.StatusBadGateway, "Mon, 30 Nov 2026 00:00:00 GMT", 0, false},
		"not at all":               {http.StatusBadGateway, "", 0, false},
		"forbidden, from a proxy":  {http.StatusForbidden, "7", 0, true},
		"unauthorized":             {http.StatusUnauthorized, "", 0, true},
		"a redirect with a number": {http.StatusFound, "1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.after)
				w.WriteHeader(test.status)
			}))
			defer server.Close()
			_, wait, err := New(Config{Stream: server.URL, Token: func() (string, error) { return "t", nil }}).open(t.Context()) //nolint:bodyclose // there is none
			if refused := new(refusal); wait != test.wait || err == nil || errors.As(err, &refused) != test.ends {
				t.Errorf("got %s, %v; want %s", wait, err, test.wait)
			}
		})
	}
}
