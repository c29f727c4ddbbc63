package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// How long certificates are good for, and how long before their end they are replaced.
const (
	authorityLife  = 5 * 365 * 24 * time.Hour
	authorityEarly = 365 * 24 * time.Hour
	servingLife    = 90 * 24 * time.Hour
	servingEarly   = 30 * 24 * time.Hour
	// skew is how far behind the clock of somebody who checks a certificate may be.
	skew = time.Hour
	// settle is how long a new authority is made known before anything is signed with it.
	settle = time.Hour
)

// keyPair is a certificate and its key, in PEM.
type keyPair struct{ certificate, key []byte }

// state is all that is kept, for one of the servers.
type state struct {
	// authority signs. Its key is nowhere but in the controller's own Secret.
	authority keyPair
	// previous is the certificate of the authority before, as long as it is good.
	previous []byte
	// serving is what the server shows.
	serving keyPair
}

// bundle is what to trust: the authority, and the one before it.
func (s state) bundle() []byte {
	return bytes.TrimLeft(append(slices.Clone(s.authority.certificate), s.previous...), "\n")
}

// rotate is the state that follows at a time: the same, if nothing is due. Whoever trusts the
// bundle of one state trusts what is served in that before and in that after it.
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
	settled := !now.Before(authority.NotBefore.Add(skew + settle))
	switch {
	case serving == nil, due(serving, servingEarly, now), !slices.Equal(serving.DNSNames, names), !isTrusted(serving, s.bundle(), now),
		settled && serving.CheckSignatureFrom(authority) != nil:
		s.serving, err = newServing(s.authority, names, now)
	}
	return s, err
}

// due reports whether a certificate is to be replaced.
func due(certificate *x509.Certificate, early time.Duration, now time.Time) bool {
	return now.Before(certificate.NotBefore) || !now.Before(certificate.NotAfter.Add(-early))
}

func isTrusted(certificate *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}

// parse reads the first certificate of a PEM text; nil when there is none.
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
