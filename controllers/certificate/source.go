package certificate

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// sourceInterval is the interval between reads of the Secret.
	sourceInterval = time.Minute
	// sourceRetry is the minimum interval between reads after a read that failed or found no
	// certificate, so that clients cannot cause many requests to kube-apiserver.
	sourceRetry = time.Second
	// sourceTimeout is how long a TLS handshake waits for kube-apiserver. After it, the previous
	// certificate is served, or the handshake fails if there is none.
	sourceTimeout = 2 * time.Second
)

// Source provides the certificate in a Secret to a TLS server. The Secret may be missing at startup
// and may change later. A Source is safe for concurrent use.
type Source struct {
	// Live reads from kube-apiserver, because the cache of the manager does not hold this Secret.
	Live client.Reader
	// Secret is the Secret with tls.crt and tls.key.
	Secret client.ObjectKey
	// Now is the clock.
	Now func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	// next is when the Secret is read again.
	next time.Time
}

// GetCertificate implements GetCertificate of tls.Config. It reads the Secret again if sourceInterval
// has passed since the last read, or sourceRetry if that read failed. If the new read fails, it returns
// the previous certificate, or an error if there is none.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Now(); !now.Before(s.next) {
		s.next = now.Add(sourceRetry)
		certificate, err := s.read(hello.Context())
		switch {
		case err == nil:
			s.current, s.next = certificate, now.Add(sourceInterval)
		case s.current == nil:
			return nil, err
		}
	}
	if s.current == nil {
		return nil, fmt.Errorf("no certificate could be read from Secret %s yet", s.Secret)
	}
	return s.current, nil
}

func (s *Source) read(ctx context.Context) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	if err := s.Live.Get(ctx, s.Secret, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", s.Secret, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[certificateKey], secret.Data[privateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("parse the certificate in Secret %s: %w", s.Secret, err)
	}
	return &pair, nil
}
