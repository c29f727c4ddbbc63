package localpostgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is long, because the certificate is never renewed.
const certificateLife = 10 * 365 * 24 * time.Hour

// hostRules let the administrator, also as a standby, in without a password. All other users need one.
const hostRules = `host all,replication ` + superuser + ` 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

// CAFile returns the path of the certificate authority, in PEM, of the server's certificate. It
// exists only if Options.Secure is set.
func (s *Server) CAFile() string { return filepath.Join(s.options.Dir, "ca.crt") }

// secure writes the files that Options.Secure needs, unless they exist, and returns the settings.
func (s *Server) secure() (map[string]string, error) {
	certificate, key := filepath.Join(s.options.Dir, "tls.crt"), filepath.Join(s.options.Dir, "tls.key")
	rules := filepath.Join(s.options.Dir, "hosts.conf")
	settings := map[string]string{"hba_file": rules, "ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}
	if _, err := os.Stat(rules); !errors.Is(err, fs.ErrNotExist) {
		return settings, err
	}
	pair, err := newPair()
	if err != nil {
		return nil, fmt.Errorf("make a certificate for postgres: %w", err)
	}
	return settings, errors.Join(
		s.write(certificate, pair.certificate), s.write(s.CAFile(), pair.certificate), s.write(key, pair.key),
		s.write(rules, []byte(hostRules)), // last, because the existence of this file means that all files exist
	)
}

// write writes a file that the server's user owns.
func (s *Server) write(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	if s.owner == nil {
		return nil
	}
	return os.Chown(path, int(s.owner.Uid), int(s.owner.Gid))
}

// pair is a certificate that is its own authority, with its key, in PEM.
type pair struct{ certificate, key []byte }

func newPair() (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "postgres"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certificateLife),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return pair{}, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}
