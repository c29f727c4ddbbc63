package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/store"
)

var loopback = netip.MustParsePrefix("127.0.0.1/32")

// webhooks knows one webhook.
type webhooks struct {
	webhook Webhook
	err     error

	mu sync.Mutex
	// causes are those for which it was disabled, unless refusal says why it cannot be.
	causes  []Cause
	reasons []string // the messages of the causes
	refusal error
}

func (w *webhooks) Webhook(context.Context, string, time.Time) (Webhook, error) {
	return w.webhook, w.err
}

func (w *webhooks) Disable(_ context.Context, _ Webhook, cause Cause, message string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal == nil {
		w.causes, w.reasons = append(w.causes, cause), append(w.reasons, message)
	}
	return w.refusal
}

// healthLog knows how webhooks fare, and nothing else.
type healthLog struct {
	Log
	health map[string]Health
}

func (h healthLog) Health(context.Context) (map[string]Health, error) { return h.health, nil }

// receiver is an HTTPS server and the webhook that leads to it.
type receiver struct {
	*httptest.Server
	secret   string
	webhooks *webhooks
}

func newReceiver(t *testing.T, handler http.HandlerFunc) *receiver {
	t.Helper()
	return startReceiver(t, handler, true)
}

// soon is the time limit of attempts that do not wait for the timeout of the webhook.
const soon = 30 * time.Second

func startReceiver(t *testing.T, handler http.HandlerFunc, http2 bool) *receiver {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	secret := signing.NewShared()
	return &receiver{Server: server, secret: secret, webhooks: &webhooks{webhook: Webhook{
		ID: "w", URL: server.URL + "/hook", Keys: []signing.Key{key(t, secret)}, Delays: DefaultDelays, Timeout: time.Minute,
		CABundle: pemOf(server.Certificate()),
	}}}
}

func key(t *testing.T, secret string) signing.Key {
	t.Helper()
	parsed, err := signing.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

const envelope = `{"id":"e1","type":"user.created","data":{"a":1,"b":2}}`

var event = store.AcceptedEvent{ID: "e1", Type: "user.created", Envelope: []byte(envelope)}

// attempt sends the event to the receiver, which is at a loopback address.
func (r *receiver) attempt(t *testing.T, change ...func(*SenderConfig)) Outcome {
	t.Helper()
	config := SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}, Random: func() float64 { return 0.5 }}
	for _, c := range change {
		c(&config)
	}
	outcome, err := NewSender(config).Site("clinic", r.webhooks, healthLog{}).Attempt(t.Context(), "w", event, 0)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func TestDelivers(t *testing.T) {
	var got *http.Request
	var body []byte
	r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
		got = request
		body, _ = io.ReadAll(request.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("thanks"))
	})
	hook := &r.webhooks.webhook
	previous := signing.NewShared()
	hook.Keys = append(hook.Keys, key(t, previous))
	hook.Fields = []string{"b"}
	hook.Header = map[string]string{
		"authorization": "Bearer x", "x-practice": "1042", "User-Agent": "Practice", "WEBHOOK-ID": "forged", "webhook-signature": "v1,forged", "Webhook-Timestamp": "0",
		"Host": "forged", "content-length": "1", "Content-Type": "text/plain", "Connection": "close", "Transfer-Encoding": "chunked",
	}
	at := time.Now().Truncate(time.Second)
	outcome := r.attempt(t)
	if outcome.Status != Delivered || outcome.Attempt.Reason != ReasonDelivered || outcome.Attempt.StatusCode != http.StatusAccepted || string(outcome.Attempt.Response) != "thanks" {
		t.Fatalf("outcome %+v", outcome)
	}
	if outcome.Attempt.At.Before(at) || outcome.Attempt.Duration <= 0 {
		t.Errorf("the attempt was at %v and took %v", outcome.Attempt.At, outcome.Attempt.Duration)
	}
	if want := `{"id":"e1","type":"user.created","data":{"b":2}}`; string(body) != want {
		t.Errorf("the receiver got %s, want %s", body, want)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer x", "X-Practice": "1042", "User-Agent": "Practice", "Content-Type": "application/json", "Webhook-Id": "e1", "Content-Length": "48",
	} {
		if values := got.Header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	if got.Method != http.MethodPost || got.URL.Path != "/hook" || "https://"+got.Host != r.URL || got.ProtoMajor != 2 || got.Header["Idempotency-Key"] != nil {
		t.Errorf("the request is %s %s of %s, %s, %v", got.Method, got.URL, got.Host, got.Proto, got.Header)
	}
	for _, secret := range []string{r.secret, previous} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(body, got.Header); err != nil {
			t.Errorf("the verifier of Standard Webhooks: %v", err)
		}
	}
}

func TestRestrictedEvents(t *testing.T) {
	for cleared, want := range map[bool]string{true: envelope, false: `{"id":"e1","type":"user.created"}`} {
		var body []byte
		r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { body, _ = io.ReadAll(request.Body) })
		r.webhooks.webhook.Cleared = cleared
		restricted := event
		restricted.Restricted = true
		site := NewSender(SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}}).Site("clinic", r.webhooks, healthLog{})
		if _, err := site.Attempt(t.Context(), "w", restricted, 0); err != nil {
			t.Fatal(err)
		}
		if string(body) != want {
			t.Errorf("cleared: %t: the receiver got %s, want %s", cleared, body, want)
		}
	}
}

// TestAnswers has what receivers do to deliveries, and what becomes of these.
func TestAnswers(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte("because"))
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		change  func(*Webhook)
		reason  Reason
		status  Status
		code    int
		// next is the pause before the next attempt; -1: at least five seconds.
		next     time.Duration
		response string
	}{
		"200":                     {status(200), nil, ReasonDelivered, Delivered, 200, 0, "because"},
		"299":                     {status(299), nil, ReasonDelivered, Delivered, 299, 0, "because"},
		"400":                     {status(400), nil, ReasonStatus, Pending, 400, 5 * time.Second, "because"},
		"500":                     {status(500), nil, ReasonStatus, Pending, 500, 5 * time.Second, "because"},
		"500 at last":             {status(500), func(w *Webhook) { w.Delays = nil }, ReasonStatus, Failed, 500, 0, "because"},
		"410":                     {status(410), nil, ReasonGone, Undelivered, 410, 0, "because"},
		"429":                     {status(429, "Retry-After", "3600"), nil, ReasonThrottled, Pending, 429, time.Hour, "because"},
		"429 in a moment":         {status(429, "Retry-After", "1"), nil, ReasonThrottled, Pending, 429, 5 * time.Second, "because"},
		"503 for good":            {status(503, "Retry-After", "999999"), nil, ReasonThrottled, Pending, 503, 24 * time.Hour, "because"},
		"503":                     {status(503), nil, ReasonThrottled, Pending, 503, 5 * time.Second, "because"},
		"500 with Retry-After":    {status(500, "Retry-After", "3600"), nil, ReasonStatus, Pending, 500, 5 * time.Second, "because"},
		"a redirect to itself":    {status(302, "Location", "/elsewhere"), nil, ReasonRedirect, Pending, 302, 5 * time.Second, "because"},
		"a redirect to loopback":  {status(307, "Location", "https://127.0.0.1/"), nil, ReasonRedirect, Pending, 307, 5 * time.Second, "because"},
		"a redirect to a machine": {status(308, "Location", "http://169.254.169.254/latest/meta-data"), nil, ReasonRedirect, Pending, 308, 5 * time.Second, "because"},
		"a gigabyte":              {endless(1 << 30), nil, ReasonDelivered, Delivered, 200, 0, string(bytes.Repeat([]byte("x"), MaxResponse))},
		"hangs":                   {hang(false), short, ReasonTimeout, Pending, 0, -1, ""},
		"hangs after the header":  {hang(true), short, ReasonTimeout, Pending, 200, -1, "I"},
		"drips":                   {drip, short, ReasonTimeout, Pending, 200, -1, "*"},
		"hangs up":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, ReasonConnection, Pending, 0, -1, ""},
		"another certificate":     {status(200), func(w *Webhook) { w.CABundle = bundleOf(newPair(t)) }, ReasonCertificate, Pending, 0, -1, ""},
		"the system's":            {status(200), func(w *Webhook) { w.CABundle = nil }, ReasonCertificate, Pending, 0, -1, ""},
		"no bundle":               {status(200), func(w *Webhook) { w.CABundle = []byte("x") }, ReasonCertificate, Pending, 0, -1, ""},
		"a header of two lines":   {status(200), func(w *Webhook) { w.Header = map[string]string{"X-A": "b\r\nC: d"} }, ReasonSecret, Pending, 0, 5 * time.Second, ""},
		"disabled":                {status(200), func(w *Webhook) { w.Disabled = "it is off" }, ReasonDisabled, Undelivered, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, test.handler)
			if test.change != nil {
				test.change(&r.webhooks.webhook)
			}
			outcome := r.attempt(t)
			hook := &r.webhooks.webhook
			for test.code != 0 && outcome.Attempt.StatusCode == 0 && outcome.Attempt.Reason == ReasonTimeout && hook.Timeout < soon {
				hook.Timeout *= 2 // too short for the header on a busy machine
				outcome = r.attempt(t)
			}
			attempt := outcome.Attempt
			if attempt.Reason != test.reason || outcome.Status != test.status || attempt.StatusCode != test.code {
				t.Errorf("outcome %s, %s, %d, want %s, %s, %d: %s", attempt.Reason, outcome.Status, attempt.StatusCode, test.reason, test.status, test.code, attempt.Message)
			}
			got := string(attempt.Response)
			if test.response == "*" && got != "" && strings.Trim(got, "I") == "" {
				got = "*" // how much arrived in time
			}
			if got != test.response {
				t.Errorf("the response is %.40q of %d bytes", got, len(got))
			}
			if outcome.Next.IsZero() != (test.next == 0) {
				t.Errorf("the next attempt is at %v", outcome.Next)
			} else if pause := outcome.Next.Sub(attempt.At.Add(attempt.Duration)); test.next > 0 && pause != test.next || test.next < 0 && pause < 5*time.Second {
				t.Errorf("the next attempt is after %v, want %v", pause, test.next)
			}
			if outcome.Disable != (test.reason == ReasonGone) || outcome.Disable != (len(r.webhooks.causes) == 1) {
				t.Errorf("disable %t, reported %v", outcome.Disable, r.webhooks.causes)
			}
			if attempt.Message == "" || attempt.Duration > soon {
				t.Errorf("it took %v: %q", attempt.Duration, attempt.Message)
			}
		})
	}
}

// TestBytesThatAreNoResponse has receivers of HTTP/1.1 that write bytes and keep the connection open.
func TestBytesThatAreNoResponse(t *testing.T) {
	for name, test := range map[string]struct {
		sent   string
		reason Reason
		code   int
	}{
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", ReasonStatus, 101},
		"control bytes":    {strings.Repeat("\x01", 60_000) + "\n", ReasonConnection, 0},
		"the event":        {`{"data":{"id":"vip"}}` + "\n", ReasonConnection, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReceiver(t, func(w http.ResponseWriter, request *http.Request) {
				conn, buffer, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = buffer.WriteString(test.sent)
				_ = buffer.Flush()
				_, _ = io.Copy(io.Discard, conn) // until the sender closes it
			}, false)
			attempt := r.attempt(t).Attempt
			if attempt.Reason != test.reason || attempt.StatusCode != test.code || attempt.Duration > soon {
				t.Errorf("outcome %s, %d, want %s, %d, after %v", attempt.Reason, attempt.StatusCode, test.reason, test.code, attempt.Duration)
			}
			if len(attempt.Message) > 600 || !utf8.ValidString(attempt.Message) {
				t.Errorf("a message of %d bytes: %.100q", len(attempt.Message), attempt.Message)
			}
			if own := attempt.OwnMessage(); own == "" || strings.Contains(own, "vip") {
				t.Errorf("OwnMessage of %.100q = %q", attempt.Message, own)
			}
		})
	}
}

// TestResolution checks that messages have no address of a name server.
func TestResolution(t *testing.T) {
	for want, err := range map[string]*net.DNSError{
		"the name of the host cannot be resolved: no such host":                    {Err: "no such host", Name: "example.org", IsNotFound: true},
		"the name of the host cannot be resolved: the name server does not answer": {Err: "read udp 10.244.0.5:43215->10.96.0.10:53: read: connection refused", Name: "example.org"},
	} {
		if reason, message := judge(answer{}, err, time.Second); reason != ReasonResolution || message != want {
			t.Errorf("%s: %s, want %s", reason, message, want)
		}
	}
}

// TestTransportOfCertificates checks that no CA bundle leads to the transport of another webhook.
func TestTransportOfCertificates(t *testing.T) {
	pair, authority := newPair(t), bundleOf(newPair(t))
	pooled := newTransports(Egress{})
	identified, err := pooled.of(Webhook{CABundle: authority, ClientCertificate: &pair})
	if err != nil {
		t.Fatal(err)
	}
	forged := fmt.Appendf(bytes.Clone(authority), "\x00%d\x00%s", len(pair.Certificate[0]), pair.Certificate[0])
	got, err := pooled.of(Webhook{CABundle: forged})
	if err != nil || got == identified {
		t.Errorf("a forged bundle has the transport with the certificate: %t, %v", got == identified, err)
	}
}

func short(w *Webhook) { w.Timeout = 300 * time.Millisecond }

// endless writes many bytes, as long as they are taken.
func endless(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		block := bytes.Repeat([]byte("x"), 1<<16)
		for written := 0; written < size; written += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
}

// hang waits until the sender is gone, perhaps after a first byte.
func hang(afterHeader bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if afterHeader {
			_, _ = w.Write([]byte("I"))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// drip writes a byte every 50 ms until the sender is gone.
func drip(w http.ResponseWriter, r *http.Request) {
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte("I"))
		_ = http.NewResponseController(w).Flush()
		<-ticks.C
	}
}

func bundleOf(pair tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
}

func TestClientCertificate(t *testing.T) {
	pair := newPair(t)
	r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
		if !bytes.Equal(request.TLS.PeerCertificates[0].Raw, pair.Certificate[0]) {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	r.TLS.ClientAuth = tls.RequireAnyClientCert
	if outcome := r.attempt(t); outcome.Attempt.Reason != ReasonCertificate {
		t.Errorf("without a certificate: %+v", outcome.Attempt)
	}
	r.webhooks.webhook.ClientCertificate = &pair
	if outcome := r.attempt(t); outcome.Status != Delivered {
		t.Errorf("with a certificate: %+v", outcome.Attempt)
	}
}

// TestExpiredCertificate has a receiver whose trusted certificate is valid, and one whose has expired.
func TestExpiredCertificate(t *testing.T) {
	for _, test := range []struct {
		end    time.Time
		status Status
		reason Reason
	}{
		{time.Now().Add(time.Hour), Delivered, ReasonDelivered},
		{time.Now().Add(-time.Hour), Pending, ReasonCertificate},
	} {
		pair := pairUntil(t, test.end)
		r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
		r.TLS.Certificates = []tls.Certificate{pair}
		r.webhooks.webhook.CABundle = bundleOf(pair)
		if outcome := r.attempt(t); outcome.Status != test.status || outcome.Attempt.Reason != test.reason {
			t.Errorf("valid until %v: %+v", test.end, outcome)
		}
	}
}

// TestDisable disables webhooks whose attempts have failed for 120 hours, and no others.
func TestDisable(t *testing.T) {
	now := time.Now()
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	for name, test := range map[string]struct {
		reported, changed, failing time.Time
		refusal                    error
		want                       bool
	}{
		"no failure before":              {want: false},
		"nor for long":                   {changed: ago(300), want: false},
		"a failure as old as the log":    {changed: ago(300), failing: ago(299), want: false},
		"119 hours":                      {reported: ago(119), failing: ago(119), want: false},
		"120 hours":                      {reported: ago(120), failing: ago(120), want: true},
		"a success since it was known":   {reported: ago(120), want: false},
		"a success, and failures since":  {reported: ago(130), failing: ago(1), want: false},
		"enabled since":                  {reported: ago(300), changed: ago(119), failing: ago(300), want: false},
		"enabled too, long ago":          {reported: ago(300), changed: ago(121), failing: ago(300), want: true},
		"but it cannot be reported":      {reported: ago(120), failing: ago(120), refusal: errors.New("no connection"), want: false},
		"changed before the first of it": {reported: ago(125), changed: ago(126), failing: ago(125), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
			r.webhooks.webhook.FailingSince, r.webhooks.webhook.Changed, r.webhooks.refusal = test.reported, test.changed, test.refusal
			sender := NewSender(SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}})
			outcome, err := sender.Site("clinic", r.webhooks, healthLog{health: map[string]Health{"w": {FailingSince: test.failing}}}).Attempt(t.Context(), "w", event, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]Status{true: Undelivered, false: Pending}[test.want]
			if outcome.Disable != test.want || outcome.Status != want || test.want != (len(r.webhooks.causes) == 1 && r.webhooks.causes[0] == CauseFailing) {
				t.Errorf("outcome %+v, reported %v, want %t", outcome, r.webhooks.causes, test.want)
			}
		})
	}
}

// TestDisabledByRestrictedEvent shows that the reason why a webhook is disabled does not quote what its receiver
// sent about a restricted event.
func TestDisabledByRestrictedEvent(t *testing.T) {
	for _, restricted := range []bool{false, true} {
		r := startReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, `{"subject":"Patient/vip"}`+"\n")
			_ = conn.Close()
		}, false)
		long := time.Now().Add(-200 * time.Hour)
		r.webhooks.webhook.FailingSince = long
		sent := event
		sent.Restricted = restricted
		sender := NewSender(SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}})
		outcome, err := sender.Site("clinic", r.webhooks, healthLog{health: map[string]Health{"w": {FailingSince: long}}}).Attempt(t.Context(), "w", sent, 0)
		if err != nil || !outcome.Disable || len(r.webhooks.reasons) != 1 {
			t.Fatalf("outcome %+v, error %v", outcome, err)
		}
		if got := strings.Contains(r.webhooks.reasons[0], "vip"); got == restricted {
			t.Errorf("restricted %t: %q", restricted, r.webhooks.reasons[0])
		}
		if !strings.Contains(outcome.Attempt.Message, "vip") {
			t.Errorf("the attempt: %q", outcome.Attempt.Message)
		}
	}
}

func TestNoAttempt(t *testing.T) {
	r := newReceiver(t, hang(false))
	site := NewSender(SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}}).Site("clinic", r.webhooks, healthLog{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := site.Attempt(ctx, "w", event, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("when the process stops: %v", err)
	}
	away := errors.New("the cluster is away")
	r.webhooks.err = away
	if _, err := site.Attempt(t.Context(), "w", event, 0); !errors.Is(err, away) {
		t.Errorf("when the settings cannot be read: %v", err)
	}
	r.webhooks.err = store.ErrNotFound
	if outcome, err := site.Attempt(t.Context(), "w", event, 0); err != nil || outcome.Attempt.Reason != ReasonDisabled || outcome.Status != Undelivered {
		t.Errorf("when the webhook is deleted: %+v, %v", outcome, err)
	}
}
