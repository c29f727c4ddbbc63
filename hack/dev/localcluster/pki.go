package localcluster

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// frontProxyName is the common name of the certificate that kube-apiserver presents to aggregated API
// servers.
const frontProxyName = "front-proxy-client"

var (
	serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	peerUsage   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// pki has all keys of the control plane. There are three authorities, because each grants something
// else: access to the API, the front proxy's right to act as any user, and access to etcd.
type pki struct {
	cluster, frontProxy, etcd *authority

	serving           keyPair
	admin             keyPair
	controllerManager keyPair
	proxyClient       keyPair
	etcdServer        keyPair
	etcdClient        keyPair

	serviceAccountKey string
}

// ensurePKI makes the keys and certificates that are missing in dir or soon expire, and keeps the
// rest. The certificate of kube-apiserver has the given addresses in addition to loopback.
func ensurePKI(dir string, addresses []net.IP, now time.Time) (pki, error) {
	p := pki{serviceAccountKey: filepath.Join(dir, "service-account.key")}
	for _, want := range []struct {
		authority  **authority
		file, name string
	}{
		{&p.cluster, "ca", "paddock-local-ca"},
		{&p.frontProxy, "front-proxy-ca", "paddock-local-front-proxy-ca"},
		{&p.etcd, "etcd-ca", "paddock-local-etcd-ca"},
	} {
		var err error
		if *want.authority, err = ensureAuthority(filepath.Join(dir, want.file), want.name, now); err != nil {
			return p, err
		}
	}
	localhost := []string{"localhost"}
	loopback := []net.IP{net.ParseIP(host)}
	for _, want := range []struct {
		pair      *keyPair
		file      string
		authority *authority
		leaf      leaf
	}{
		{&p.serving, "apiserver", p.cluster, leaf{
			commonName: "kube-apiserver", usages: serverUsage, ips: slices.Concat(loopback, addresses),
			dnsNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		}},
		{&p.admin, "admin", p.cluster, leaf{
			commonName: "kubernetes-admin", organizations: []string{"system:masters"}, usages: clientUsage,
		}},
		{&p.controllerManager, "controller-manager", p.cluster, leaf{
			commonName: "system:kube-controller-manager", usages: clientUsage,
		}},
		{&p.proxyClient, "front-proxy-client", p.frontProxy, leaf{commonName: frontProxyName, usages: clientUsage}},
		{&p.etcdServer, "etcd", p.etcd, leaf{
			commonName: "etcd", usages: peerUsage, ips: loopback, dnsNames: localhost,
		}},
		{&p.etcdClient, "etcd-client", p.etcd, leaf{commonName: "kube-apiserver", usages: clientUsage}},
	} {
		var err error
		if *want.pair, err = want.authority.ensure(filepath.Join(dir, want.file), want.leaf, now); err != nil {
			return p, err
		}
	}
	return p, ensureKey(p.serviceAccountKey)
}

// ensureKey makes the key that signs service account tokens, unless it exists. Tokens are therefore
// valid after a restart.
func ensureKey(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	encoded, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("make service account key: %w", err)
	}
	if err := replaceFile(file, encoded); err != nil {
		return fmt.Errorf("keep service account key: %w", err)
	}
	return nil
}

// clientConfig returns the configuration of a client, without a rate limit, of the API server on
// port. The client authenticates by a certificate.
func (p pki) clientConfig(port int, client keyPair) (*rest.Config, error) {
	config := &rest.Config{Host: baseURL(port), QPS: -1, Burst: -1}
	for _, file := range []struct {
		content *[]byte
		path    string
	}{
		{&config.CAData, p.cluster.certFile},
		{&config.CertData, client.certFile},
		{&config.KeyData, client.keyFile},
	} {
		var err error
		if *file.content, err = os.ReadFile(file.path); err != nil {
			return nil, fmt.Errorf("read client credentials: %w", err)
		}
	}
	return config, nil
}

// userConfig returns a copy of admin with a new client certificate for a user.
func (p pki) userConfig(admin *rest.Config, user string, groups []string) (*rest.Config, error) {
	issued, key, err := p.cluster.issue(leaf{commonName: user, organizations: groups, usages: clientUsage}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("issue certificate for user %s: %w", user, err)
	}
	config := rest.CopyConfig(admin)
	if config.CertData, err = cert.EncodeCertificates(issued); err != nil {
		return nil, fmt.Errorf("issue certificate for user %s: %w", user, err)
	}
	if config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, fmt.Errorf("issue certificate for user %s: %w", user, err)
	}
	return config, nil
}
