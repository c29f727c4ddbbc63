package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// TestCertificateIsReadAgain shows that new connections get a renewed certificate without a restart,
// that open ones stay, and that a file that cannot be read leaves the former certificate in use.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	l := &Listener{Address: "127.0.0.1:0", CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	// renew replaces both files, as a cluster replaces those of a Secret, and returns what to trust.
	renew := func() *x509.CertPool {
		t.Helper()
		certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string][]byte{l.KeyFile: key, l.CertFile: certificate} {
			if err := os.WriteFile(path+".new", content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(certificate)
		return trusted
	}
	first := renew()
	listener, err := l.listen(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	served := facadeServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	go func() { _ = served.Serve(listener) }()
	t.Cleanup(func() { _ = served.Close() })
	clientOf := func(trusted *x509.CertPool) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	}
	get := func(client *http.Client) error {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+listener.Addr().String(), http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	open := clientOf(first)
	if err := get(open); err != nil {
		t.Fatal(err)
	}
	second := renew()
	// The watcher sees the change at once, or at its next look after 10 s.
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err = get(clientOf(second)); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("a new connection does not get the renewed certificate: %v", err)
		}
	}
	if err := get(clientOf(first)); err == nil {
		t.Error("a new connection gets the former certificate")
	}
	if err := get(open); err != nil {
		t.Errorf("an open connection: %v", err)
	}
	if err := os.WriteFile(l.CertFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := get(clientOf(second)); err != nil {
		t.Errorf("with a file that cannot be read: %v", err)
	}
}
