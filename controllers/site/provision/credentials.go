package provision

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// user and database are the names of the owner and of the database. The server has no other
// databases of users.
const user, database = "paddock", "paddock"

// The keys of the Secret, in addition to those of all Secrets of type paddock.health/dsn.
const (
	usernameKey          = "username"
	passwordKey          = "password"
	serverCertificateKey = "server.crt"
	serverPrivateKeyKey  = "server.key"
)

// forever is the expiry of a certificate that does not expire (RFC 5280, 4.1.2.5). Only readers of
// the database's Secret trust this certificate, and it is deleted with that Secret.
var forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// NewSecret returns a Secret of type paddock.health/dsn with a new server certificate and the
// password, or a random password if password is empty. The Secret is immutable, so the reconciler
// creates it only if it does not exist.
func NewSecret(site *v1alpha1.Site, o Options, password string) (*corev1.Secret, error) {
	if password == "" {
		password = rand.Text()
	}
	certificate, key, err := newCertificate(Host(site))
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the database: %w", err)
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: about(site, o),
		Type:       v1alpha1.SecretTypeDSN,
		Immutable:  ptr.To(true),
		Data: map[string][]byte{
			v1alpha1.DSNKey: []byte(uri(Host(site), password)),
			dsn.CAKey:       certificate,
			usernameKey:     []byte(user), passwordKey: []byte(password),
			serverCertificateKey: certificate, serverPrivateKeyKey: key,
		},
	}, nil
}

// Connection returns the connection to the Site's database and its standbys. The host is not read from
// the Secret, because the tenant can write the Secret. If authority is not nil, its CA certificates (PEM) are
// trusted instead of those in the Secret. Errors: *dsn.FieldError.
func Connection(site *v1alpha1.Site, secret *corev1.Secret, authority []byte) (dsn.Connection, error) {
	if authority == nil {
		authority = secret.Data[dsn.CAKey]
	}
	password := secret.Data[passwordKey]
	switch {
	case len(password) == 0:
		return dsn.Connection{}, &dsn.FieldError{Field: passwordKey, Problem: "is not in the Secret"}
	case len(authority) == 0:
		return dsn.Connection{}, &dsn.FieldError{Field: dsn.CAKey, Problem: "is not in the Secret"}
	}
	data := map[string][]byte{v1alpha1.DSNKey: []byte(uri(Host(site), string(password))), dsn.CAKey: authority}
	if host := replicaHost(site); host != "" {
		data[dsn.ReplicaKey(v1alpha1.DSNKey)] = []byte(uri(host, string(password)))
	}
	return dsn.Parse(data, v1alpha1.DSNKey)
}

// Password returns the password in the URI of a connection. It returns "" if the URI has no password, or is
// that of another database than the Site's, such as the database that the Site leaves by a SiteMove.
func Password(site *v1alpha1.Site, connection dsn.Connection) string {
	address, err := url.Parse(connection.URI)
	if err != nil || address.Hostname() != Host(site) {
		return ""
	}
	password, _ := address.User.Password()
	return password
}

// Certificate returns an identifier of the server certificate in a Secret: the beginning of its
// SHA-256 hash.
func Certificate(secret *corev1.Secret) string {
	sum := sha256.Sum256(secret.Data[serverCertificateKey])
	return hex.EncodeToString(sum[:8])
}

func uri(host, password string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: host + ":" + strconv.Itoa(port), Path: "/" + database,
		RawQuery: "sslmode=verify-full",
	}).String()
}

// newCertificate returns a self-signed certificate for the host and its private key, PEM-encoded. A
// client that trusts it trusts no other server.
func newCertificate(host string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: Name}, DNSNames: []string{host},
		NotBefore: time.Unix(0, 0), NotAfter: forever, // valid whatever the clocks of server and clients are
		BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", encoded), nil
}

func encode(kind string, der []byte) []byte {
	return bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
