package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// How long certificates are valid, and how long before their expiry they are replaced.
const (
	authorityLife  = 5 * 365 * 24 * time.Hour
	authorityEarly = 365 * 24 * time.Hour
	servingLife    = 90 * 24 * time.Hour
	servingEarly   = 30 * 24 * time.Hour
	// skew is how far the clock of a client can be behind. A certificate is valid from the time skew
	// before it is issued.
	skew = time.Hour
	// propagation is how long a new authority is in the CA bundles before it signs certificates.
	propagation = time.Hour
)

// keyPair is a certificate and its private key, PEM-encoded.
type keyPair struct{ certificate, key []byte }

// state is the stored state of the authority and of one server.
type state struct {
	// authority signs the certificate of the server. Its private key is only in the controller's
	// Secret.
	authority keyPair
	// previous is the certificate of the previous authority, or nil if there is none or it has
	// expired.
	previous []byte
	// serving is the certificate of the server.
	serving keyPair
}

// bundle returns the CA bundle: the authority and the previous one.
func (s state) bundle() []byte {
	return bytes.TrimLeft(append(slices.Clone(s.authority.certificate), s.previous...), "\n")
}

// rotate replaces the certificates that are missing, invalid or due at the time, and removes a previous
// authority that has expired. The certificate of the server is also replaced if it has other names, or if
// a new authority has been in the bundles for propagation. Without any of this, rotate returns s
// unchanged. A client with the bundle of one state trusts the certificates served in the previous, the
// same and the next state.
func rotate(s state, names []string, now time.Time) (state, error) {
	var err error
	authority := s.authority.parse()
	if authority == nil || !authority.IsCA || due(authority, authorityEarly, now) {
		s.previous = nil
		if authority != nil && authority.IsCA {
			s.previous = s.authority.certificate
		}
		if s.authority, err = newAuthority(now); err != nil {
			return s, err
		}
		authority = s.authority.parse()
	}
	if previous := parse(s.previous); previous == nil || !previous.IsCA || !now.Before(previous.NotAfter) {
		s.previous = nil
	}
	serving := s.serving.parse()
	propagated := !now.Before(authority.NotBefore.Add(skew + propagation))
	switch {
	case serving == nil, due(serving, servingEarly, now), !slices.Equal(serving.DNSNames, names), !isTrusted(serving, s.bundle(), now),
		propagated && serving.CheckSignatureFrom(authority) != nil:
		s.serving, err = newServing(s.authority, names, now)
	}
	return s, err
}

// due reports whether a certificate must be replaced: it expires within early, or is not valid yet.
func due(certificate *x509.Certificate, early time.Duration, now time.Time) bool {
	return now.Before(certificate.NotBefore) || !now.Before(certificate.NotAfter.Add(-early))
}

func isTrusted(certificate *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}

// parse returns the first certificate of a PEM text, or nil.
func parse(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}
