package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	day = 24 * time.Hour
	// clockSlack lets certificates be used where the clock is a little behind or stepped back.
	clockSlack      = day
	leafLife        = 365 * day
	renewLeafBefore = 30 * day
	// renewCABefore lets every certificate of an authority expire before the authority does.
	renewCABefore = leafLife + renewLeafBefore
)

// keyPair has the paths of a certificate and of its private key, both in PEM.
type keyPair struct{ certFile, keyFile string }

func pairAt(base string) keyPair { return keyPair{base + ".crt", base + ".key"} }

// authority signs certificates. It is kept on disk, and replaced renewCABefore its end.
type authority struct {
	keyPair
	cert *x509.Certificate
	key  crypto.Signer
}

// leaf has the contents of the certificate of a client or server.
type leaf struct {
	commonName    string
	organizations []string
	usages        []x509.ExtKeyUsage
	dnsNames      []string
	ips           []net.IP
}

// ensureAuthority loads the authority kept at base or makes a new one.
func ensureAuthority(base, commonName string, now time.Time) (*authority, error) {
	a := &authority{keyPair: pairAt(base)}
	var err error
	if a.cert, a.key, err = a.load(); err != nil {
		return nil, fmt.Errorf("load certificate authority: %w", err)
	}
	if a.cert != nil && now.Add(renewCABefore).Before(a.cert.NotAfter) {
		return a, nil
	}
	if a.key, err = newKey(); err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", commonName, err)
	}
	config := cert.Config{CommonName: commonName, NotBefore: now.Add(-clockSlack)}
	if a.cert, err = cert.NewSelfSignedCACert(config, a.key); err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", commonName, err)
	}
	if err := a.save(a.cert, a.key); err != nil {
		return nil, fmt.Errorf("keep certificate authority %s: %w", commonName, err)
	}
	return a, nil
}

// ensure returns a certificate for l that is stored at base. It keeps the stored certificate if that
// stands until renewLeafBefore from now, and replaces it otherwise.
func (a *authority) ensure(base string, l leaf, now time.Time) (keyPair, error) {
	pair := pairAt(base)
	have, _, err := pair.load()
	if err != nil {
		return pair, fmt.Errorf("load certificate: %w", err)
	}
	if have != nil && a.stands(have, l, now.Add(renewLeafBefore)) {
		return pair, nil
	}
	issued, key, err := a.issue(l, now)
	if err != nil {
		return pair, fmt.Errorf("issue certificate for %s: %w", l.commonName, err)
	}
	if err := pair.save(issued, key); err != nil {
		return pair, fmt.Errorf("keep certificate for %s: %w", l.commonName, err)
	}
	return pair, nil
}

// stands reports whether c is signed by a, matches l, and is valid at the given time.
func (a *authority) stands(c *x509.Certificate, l leaf, at time.Time) bool {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, usage := range l.usages {
		options := x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := c.Verify(options); err != nil {
			return false
		}
	}
	return c.Subject.CommonName == l.commonName &&
		slices.Equal(c.Subject.Organization, l.organizations) &&
		slices.Equal(c.DNSNames, l.dnsNames) &&
		slices.EqualFunc(c.IPAddresses, l.ips, net.IP.Equal)
}

func (a *authority) issue(l leaf, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), // zero is not allowed
		Subject:      pkix.Name{CommonName: l.commonName, Organization: l.organizations},
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  l.usages,
		DNSNames:     l.dnsNames,
		IPAddresses:  l.ips,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	issued, err := x509.ParseCertificate(der)
	return issued, key, err
}

func newKey() (crypto.Signer, error) {
	encoded, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	return parseKey(encoded)
}

func parseKey(encoded []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(encoded)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key is a %T, want ECDSA", key)
	}
	return signer, nil
}

// load returns nil values, and no error, if a file is missing or the files do not belong together, as
// after a crash between the writes of the two files.
func (p keyPair) load() (*x509.Certificate, crypto.Signer, error) {
	certPEM, err := os.ReadFile(p.certFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := os.ReadFile(p.keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	certs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.certFile, err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.keyFile, err)
	}
	if public, ok := certs[0].PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, nil, nil
	}
	return certs[0], key, nil
}

func (p keyPair) save(c *x509.Certificate, key crypto.Signer) error {
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	certPEM, err := cert.EncodeCertificates(c)
	if err != nil {
		return err
	}
	if err := replaceFile(p.keyFile, keyPEM); err != nil {
		return err
	}
	return replaceFile(p.certFile, certPEM)
}
