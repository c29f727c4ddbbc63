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
	// sourceInterval is how long a certificate is served before the Secret is looked at again.
	sourceInterval = time.Minute
	// sourceRetry is the least time between two looks at a Secret without a certificate: who
	// connects often does not make kube-apiserver answer often.
	sourceRetry = time.Second
	// sourceTimeout bounds how long a handshake waits for kube-apiserver.
	sourceTimeout = 2 * time.Second
)

// Source hands a server the certificate in a Secret. There may be none at first, and another
// later: a program starts without it and goes on when it is replaced.
type Source struct {
	// Live reads past the cache, which has no Secrets of this type.
	Live client.Reader
	// Secret has tls.crt and tls.key.
	Secret client.ObjectKey
	// Now is the clock.
	Now func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	// next is when the Secret is looked at again.
	next time.Time
}

// GetCertificate is for a tls.Config.
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
		return nil, fmt.Errorf("there is no certificate in Secret %s yet", s.Secret)
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
		return nil, fmt.Errorf("use the certificate in Secret %s: %w", s.Secret, err)
	}
	return &pair, nil
}
