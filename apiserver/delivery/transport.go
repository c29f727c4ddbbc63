package delivery

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-health/paddock/apiserver/egress"
)

const (
	// maxTransports is the maximum number of transports, one for each set of certificates. At the limit,
	// the oldest transport is removed, and its idle connections are closed.
	maxTransports = 256
	// Limits of idle connections: per transport, per receiver, and the time until they are closed.
	maxIdle            = 512
	maxIdlePerReceiver = 32
	idleTimeout        = 90 * time.Second
	// maxHeader is the maximum size of a response's header in bytes. With a larger header, the attempt
	// fails.
	maxHeader = 64 << 10
	// pingTimeout is the time without a frame on an HTTP/2 connection after which a ping is sent, and the
	// time limit of the response to the ping. At that limit the connection is closed.
	pingTimeout = 10 * time.Second
)

// Egress restricts connections to receivers.
type Egress struct {
	// Allowed are the networks that are allowed in addition to public addresses (egress.NewDialer).
	Allowed []netip.Prefix
	// Refused are networks that are refused even within Allowed: those of pods and Services.
	Refused []netip.Prefix
	// ClusterDomain is the DNS domain of the cluster. Default: cluster.local.
	ClusterDomain string
	// Proxy returns the proxy for a request, nil for none, as http.ProxyFromEnvironment does.
	// Addresses to which a proxy connects are not checked. Default: no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// Resolver resolves names. Default: net.DefaultResolver.
	Resolver *net.Resolver
}

// transports are the connections to receivers. They are safe for concurrent use.
type transports struct {
	egress Egress
	// direct checks the address before it connects. toProxy does not.
	direct, toProxy *net.Dialer

	mu sync.Mutex
	// byCertificates are the transports by the digest of their certificates; order has the digests,
	// the oldest first.
	byCertificates map[[sha256.Size]byte]*http.Transport
	order          [][sha256.Size]byte
}

func newTransports(e Egress) *transports {
	if e.ClusterDomain == "" {
		e.ClusterDomain = "cluster.local"
	}
	direct := egress.NewDialer(e.Allowed)
	direct.Resolver = e.Resolver
	guard := direct.Control
	direct.Control = func(network, address string, conn syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %q is not an address", egress.ErrProhibited, address)
		}
		if slices.ContainsFunc(e.Refused, func(refused netip.Prefix) bool { return refused.Contains(to.Addr().Unmap()) }) {
			return fmt.Errorf("%w: the address is in a network of the cluster", egress.ErrProhibited)
		}
		return guard(network, address, conn)
	}
	return &transports{
		egress: e, direct: direct, toProxy: &net.Dialer{Timeout: direct.Timeout, KeepAliveConfig: direct.KeepAliveConfig},
		byCertificates: map[[sha256.Size]byte]*http.Transport{},
	}
}

// of returns the transport for the certificates of a webhook. Errors: errNoAuthorities.
func (t *transports) of(webhook Webhook) (*http.Transport, error) {
	certificates := [][]byte{webhook.CABundle}
	if webhook.ClientCertificate != nil {
		certificates = append(certificates, webhook.ClientCertificate.Certificate...)
	}
	digest := sha256.New()
	for _, each := range certificates {
		_, _ = fmt.Fprintf(digest, "%d %s", len(each), each) // it never fails
	}
	key := [sha256.Size]byte(digest.Sum(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	if transport, ok := t.byCertificates[key]; ok {
		return transport, nil
	}
	transport, err := t.make(webhook)
	if err != nil {
		return nil, err
	}
	if len(t.order) == maxTransports {
		t.byCertificates[t.order[0]].CloseIdleConnections()
		delete(t.byCertificates, t.order[0])
		t.order = t.order[1:]
	}
	t.byCertificates[key], t.order = transport, append(t.order, key)
	return transport, nil
}

// errNoAuthorities is returned for a CA bundle without a certificate.
var errNoAuthorities = errors.New("caBundle contains no PEM certificate; set it to the certificates of the CAs that the receiver uses")

func (t *transports) make(webhook Webhook) (*http.Transport, error) {
	certificates := &tls.Config{MinVersion: tls.VersionTLS12}
	if webhook.CABundle != nil {
		certificates.RootCAs = x509.NewCertPool()
		if !certificates.RootCAs.AppendCertsFromPEM(webhook.CABundle) {
			return nil, errNoAuthorities
		}
	}
	certificates.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if requested, ok := info.Context().Value(certificateRequested{}).(*atomic.Bool); ok {
			requested.Store(true)
		}
		if own := webhook.ClientCertificate; own != nil && info.SupportsCertificate(own) == nil {
			return own, nil
		}
		return new(tls.Certificate), nil // none
	}
	return &http.Transport{
		Proxy:                  t.egress.Proxy,
		DialContext:            t.dial,
		TLSClientConfig:        certificates,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
		DisableCompression:     true, // the answer is kept as it is sent
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerReceiver,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}, nil
}

// certificateRequested is the context key of an *atomic.Bool, which is set when the receiver requests a
// client certificate in the handshake that the request started.
type certificateRequested struct{}

// errCertificateRequested is returned if a receiver requests a client certificate and then closes
// the connection. In TLS 1.3 the receiver judges the certificate after the client's side of the
// handshake is done, so that its alert is often lost: writing the request fails first.
var errCertificateRequested = errors.New("the receiver requested a client certificate and then closed the connection")

// viaProxy is the context key that marks requests through a proxy.
type viaProxy struct{}

// dial connects to a receiver, or to the proxy. Names are absolute: the search list of a pod's
// resolver would lead short names to Services of the cluster.
func (t *transports) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if ctx.Value(viaProxy{}) != nil {
		return t.toProxy.DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", address, err)
	}
	if _, err := netip.ParseAddr(host); err != nil && !strings.HasSuffix(host, ".") {
		address = net.JoinHostPort(host+".", port)
	}
	return t.direct.DialContext(ctx, network, address)
}

// route refuses names of the cluster, and returns the request with a mark if it goes through a
// proxy. Errors: egress.ErrProhibited.
func (t *transports) route(request *http.Request) (*http.Request, error) {
	host := strings.ToLower(strings.TrimSuffix(request.URL.Hostname(), "."))
	if t.isOfCluster(host) {
		return nil, fmt.Errorf("%w: %s is a name of the cluster", egress.ErrProhibited, host)
	}
	if t.egress.Proxy == nil {
		return request, nil
	}
	proxy, err := t.egress.Proxy(request)
	if err != nil || proxy == nil {
		return request, err
	}
	return request.WithContext(context.WithValue(request.Context(), viaProxy{}, true)), nil
}

// isOfCluster reports whether a host is a name of a Service or a pod. It is true for each name without a
// dot except localhost, because such a name can be that of a Service.
func (t *transports) isOfCluster(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return false // dial checks addresses
	}
	domain := strings.ToLower(t.egress.ClusterDomain)
	within := func(parent string) bool { return host == parent || strings.HasSuffix(host, "."+parent) }
	return !strings.Contains(host, ".") || within("svc") || within(domain)
}
