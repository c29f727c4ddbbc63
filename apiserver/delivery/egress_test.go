package delivery

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func newPair(t *testing.T) tls.Certificate {
	t.Helper()
	return pairUntil(t, time.Now().Add(time.Hour))
}

// pairUntil returns a private key and a certificate for 127.0.0.1 that expires at the given time.
func pairUntil(t *testing.T, end time.Time) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// TestForbiddenAddresses has addresses that nothing is sent to, whatever the operator allows.
func TestForbiddenAddresses(t *testing.T) {
	var requests atomic.Int32
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	wide := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for name, test := range map[string]struct {
		url    string
		egress Egress
	}{
		"loopback":                    {r.URL, Egress{}},
		"loopback in a wide network":  {r.URL, Egress{Allowed: wide}},
		"loopback as IPv6":            {"https://[::ffff:127.0.0.1]" + r.URL[len("https://127.0.0.1"):], Egress{Allowed: wide}},
		"a network of the cluster":    {r.URL, Egress{Allowed: []netip.Prefix{loopback}, Refused: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/16")}}},
		"one of pods":                 {"https://10.244.0.7/", Egress{Allowed: wide, Refused: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}}},
		"a private network":           {"https://10.0.0.1/", Egress{}},
		"a machine's credentials":     {"https://169.254.169.254/", Egress{Allowed: wide}},
		"kubernetes.default.svc":      {"https://kubernetes.default.svc/api", Egress{Allowed: wide}},
		"the same, with the domain":   {"https://Kubernetes.default.SVC.cluster.local./api", Egress{Allowed: wide}},
		"the same, in its namespace":  {"https://kubernetes:443/api", Egress{Allowed: wide}},
		"a pod":                       {"https://10-244-0-7.demo.pod.cluster.local/", Egress{Allowed: wide}},
		"its name, through a proxy":   {"https://kubernetes.default.svc/", Egress{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}},
		"its address, past the proxy": {r.URL, Egress{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			r.webhooks.webhook.URL = test.url
			outcome := r.attempt(t, func(c *SenderConfig) { c.Egress = test.egress })
			if outcome.Attempt.Reason != ReasonForbiddenAddress || outcome.Status != Pending {
				t.Errorf("outcome %+v", outcome)
			}
			if strings.ContainsAny(outcome.Attempt.Message, "0123456789") {
				t.Errorf("the message has an address: %s", outcome.Attempt.Message)
			}
		})
	}
	if got := requests.Load(); got != 0 {
		t.Errorf("the receiver got %d requests", got)
	}
}

// TestRebinding sends to a name that resolves to an allowed address the first time, and to another
// one from then on.
func TestRebinding(t *testing.T) {
	var requests, lookups atomic.Int32
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	r.Config.SetKeepAlivesEnabled(false)
	other, err := net.Listen("tcp4", "127.0.0.2"+r.URL[len("https://127.0.0.1"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	names := serveNames(t, func(name string) netip.Addr {
		if name != "example.com." {
			return netip.Addr{}
		}
		return netip.AddrFrom4([4]byte{127, 0, 0, byte(min(lookups.Add(1), 2))})
	})
	r.webhooks.webhook.URL = "https://example.com" + r.URL[len("https://127.0.0.1"):]
	resolves := func(c *SenderConfig) { c.Egress.Resolver = names }
	if outcome := r.attempt(t, resolves); outcome.Status != Delivered {
		t.Fatalf("outcome %+v", outcome)
	}
	outcome := r.attempt(t, resolves)
	if outcome.Attempt.Reason != ReasonForbiddenAddress || requests.Load() != 1 {
		t.Errorf("outcome %+v after %d requests", outcome, requests.Load())
	}
	r.webhooks.webhook.URL = "https://nowhere.example/"
	if outcome := r.attempt(t, resolves); outcome.Attempt.Reason != ReasonResolution || outcome.Attempt.Message != "the name of the host cannot be resolved: no such host" {
		t.Errorf("a name without an address: %+v", outcome.Attempt)
	}
}

// TestProxy sends through a proxy, to which what the operator says of addresses does not apply.
func TestProxy(t *testing.T) {
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	var connects atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		connects.Add(1)
		there, err := net.Dial("tcp", request.Host)
		if err != nil || request.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = there.Close()
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(there, buffered)
			_ = there.Close()
		}()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	outcome := r.attempt(t, func(c *SenderConfig) { c.Egress = Egress{Proxy: http.ProxyURL(address)} })
	if outcome.Status != Delivered || connects.Load() != 1 {
		t.Errorf("outcome %+v after %d connections through the proxy", outcome, connects.Load())
	}
}

// TestConnectionsAreKept sends over one connection for each set of certificates.
func TestConnectionsAreKept(t *testing.T) {
	addresses := map[string]bool{}
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { addresses[request.RemoteAddr] = true })
	sender := NewSender(SenderConfig{Egress: Egress{Allowed: []netip.Prefix{loopback}}})
	send := func() {
		t.Helper()
		if outcome, err := sender.Site("clinic", r.webhooks, healthLog{}).Attempt(t.Context(), "w", event, 0); err != nil || outcome.Status != Delivered {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	for range 3 {
		send()
	}
	if len(addresses) != 1 {
		t.Errorf("three attempts came from %v", addresses)
	}
	pair := newPair(t)
	r.webhooks.webhook.ClientCertificate = &pair
	send()
	if len(addresses) != 2 {
		t.Errorf("with a client certificate, attempts came from %v", addresses)
	}
}

func TestTransportsAreBounded(t *testing.T) {
	all := newTransports(Egress{})
	for range 2 * maxTransports {
		pair := tls.Certificate{Certificate: [][]byte{[]byte(rand.Text())}}
		if _, err := all.of(Webhook{ClientCertificate: &pair}); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.byCertificates) != maxTransports || len(all.order) != maxTransports {
		t.Errorf("there are %d transports, %d in order", len(all.byCertificates), len(all.order))
	}
}

// serveNames is a resolver that asks a server of names for IPv4 addresses. Names of which answer
// makes no address do not exist.
func serveNames(t *testing.T, answer func(name string) netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if err := message.Unpack(buffer[:n]); err != nil || len(message.Questions) != 1 {
				continue
			}
			if packed, err := reply(message, answer); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func reply(message dnsmessage.Message, answer func(name string) netip.Addr) ([]byte, error) {
	question := message.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, RecursionAvailable: true},
		Questions: message.Questions,
	}
	if question.Type == dnsmessage.TypeA {
		address := answer(question.Name.String())
		if !address.IsValid() {
			reply.RCode = dnsmessage.RCodeNameError
			return reply.Pack()
		}
		reply.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class},
			Body:   &dnsmessage.AResource{A: address.As4()},
		}}
	}
	return reply.Pack()
}

// TestClosedPorts has messages without addresses.
func TestClosedPorts(t *testing.T) {
	const closed = "127.0.0.1:1" // the system assigns this port to no other program
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	r.webhooks.webhook.URL = "https://" + closed + "/hook"
	for name, proxy := range map[string]func(*http.Request) (*url.URL, error){
		"of the receiver": nil, "of the proxy": http.ProxyURL(&url.URL{Scheme: "http", Host: closed}),
	} {
		outcome := r.attempt(t, func(c *SenderConfig) { c.Egress.Proxy = proxy })
		if outcome.Attempt.Reason != ReasonConnection || outcome.Attempt.Message != "the connection failed: connect: connection refused" {
			t.Errorf("%s: %+v", name, outcome.Attempt)
		}
	}
}

// TestNoTLS has receivers that agree on no TLS connection.
func TestNoTLS(t *testing.T) {
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	names := serveNames(t, func(string) netip.Addr { return loopback.Addr() })
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct {
		url     string
		timeout time.Duration
		want    Reason
	}{
		"a certificate of another name": {"https://other.example" + r.URL[len("https://127.0.0.1"):], time.Minute, ReasonCertificate},
		"no word":                       {"https://" + silent.Addr().String(), 500 * time.Millisecond, ReasonTimeout},
		"no TLS":                        {"https" + plain.URL[len("http"):], time.Minute, ReasonCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			r.webhooks.webhook.URL, r.webhooks.webhook.Timeout = test.url, test.timeout
			if outcome := r.attempt(t, func(c *SenderConfig) { c.Egress.Resolver = names }); outcome.Attempt.Reason != test.want {
				t.Errorf("outcome %+v, want %s", outcome.Attempt, test.want)
			}
		})
	}
}
