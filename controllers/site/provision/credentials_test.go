package provision

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

func newSecret(t *testing.T, site *v1alpha1.Site, password string) *corev1.Secret {
	t.Helper()
	secret, err := NewSecret(site, testOptions, password)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestNewSecret(t *testing.T) {
	site := readSite(t, "testdata/statefulset-defaults.in.yaml")
	secret := newSecret(t, site, "")
	if password := string(secret.Data[passwordKey]); len(password) < 20 || password == string(newSecret(t, site, "").Data[passwordKey]) {
		t.Errorf("a password of %d characters, or one that another has too", len(password))
	}
	if secret.Immutable == nil || !*secret.Immutable || len(secret.OwnerReferences) > 0 {
		t.Error("the Secret can be changed, or goes with an owner")
	}
	pair, err := tls.X509KeyPair(secret.Data[serverCertificateKey], secret.Data[serverPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(secret.Data[dsn.CAKey])
	for host, trusted := range map[string]bool{
		"paddock-postgres.clinic-oak.svc": true, "paddock-postgres.clinic-elm.svc": false,
	} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, DNSName: host})
		if (err == nil) != trusted {
			t.Errorf("%s: %v, want trusted: %t", host, err, trusted)
		}
	}
	if again := newSecret(t, site, "kept"); string(again.Data[passwordKey]) != "kept" || Certificate(again) == Certificate(secret) {
		t.Error("a password that is given is not kept, or the certificate of two Secrets has one name")
	}
}

func TestConnection(t *testing.T) {
	oak, cnpg := readSite(t, "testdata/statefulset-defaults.in.yaml"), readSite(t, "testdata/cnpg-defaults.in.yaml")
	secret := newSecret(t, oak, "pa/ss")
	secret.Data[v1alpha1.DSNKey] = []byte("postgres://paddock@169.254.169.254/paddock") // a tenant's idea
	connection, err := Connection(oak, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "postgres://paddock:pa%2Fss@paddock-postgres.clinic-oak.svc:5432/paddock?sslmode=verify-full"; connection.URI != want {
		t.Errorf("got %s, want %s", connection.URI, want)
	}
	if Password(oak, connection) != "pa/ss" || connection.CA != string(secret.Data[dsn.CAKey]) {
		t.Errorf("password or authority are not those of the Secret")
	}
	elsewhere := dsn.Connection{URI: "postgres://paddock:secret@pool.example.org:5432/paddock"}
	if got := Password(oak, elsewhere); got != "" {
		t.Errorf("got password %q of another database, want none", got)
	}
	other := newSecret(t, cnpg, "").Data[dsn.CAKey]
	connection, err = Connection(cnpg, secret, other)
	if err != nil || !strings.Contains(connection.URI, "@paddock-postgres.clinic-oak.svc:5432/") || connection.CA != string(other) {
		t.Errorf("got %v, want the primary, and the authority that is given", err)
	}
	if want := "@paddock-postgres-replicas.clinic-oak.svc:5432/paddock"; !strings.Contains(connection.ReplicaURI, want) {
		t.Errorf("the replicas are at %s, want %s", connection.ReplicaURI, want)
	}
	single := readSite(t, "testdata/cnpg-single.in.yaml")
	for _, site := range []*v1alpha1.Site{oak, single} {
		if connection, err := Connection(site, secret, other); err != nil || connection.ReplicaURI != "" {
			t.Errorf("a database with one instance has replicas at %s (%v)", connection.ReplicaURI, err)
		}
	}
	for _, key := range []string{passwordKey, dsn.CAKey} {
		broken := secret.DeepCopy()
		delete(broken.Data, key)
		if _, err := Connection(oak, broken, nil); err == nil || !strings.HasPrefix(err.Error(), key) {
			t.Errorf("without %s: got %v", key, err)
		}
	}
}
