package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// newAuthority creates a self-signed authority. Its name has the current time, so that it differs
// from the name of the previous authority.
func newAuthority(now time.Time) (keyPair, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "paddock " + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	return issue(template, keyPair{})
}

// newServing creates a certificate for a server with these DNS names.
func newServing(authority keyPair, names []string, now time.Time) (keyPair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "paddock"}, DNSNames: names,
		NotBefore: now.Add(-skew), NotAfter: now.Add(servingLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return issue(template, authority)
}

// issue creates a key and a certificate from a template. The certificate is signed by the
// authority, or self-signed if the authority is empty.
func issue(template *x509.Certificate, authority keyPair) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("create a private key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return keyPair{}, fmt.Errorf("create a serial number: %w", err)
	}
	parent, signer := template, crypto.PrivateKey(key)
	if authority.certificate != nil {
		pair, err := tls.X509KeyPair(authority.certificate, authority.key)
		if err != nil {
			return keyPair{}, fmt.Errorf("parse the certificate and key of the authority: %w", err)
		}
		parent, signer = pair.Leaf, pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode a private key: %w", err)
	}
	return keyPair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// parse returns the certificate, or nil if it is not valid for the key.
func (p keyPair) parse() *x509.Certificate {
	pair, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		return nil
	}
	return pair.Leaf
}
