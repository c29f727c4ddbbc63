// Command issuer is an OpenID Connect issuer for tests: the provider of zitadel/oidc behind
// TLS, with an authority of its own. Its keys are in a folder, so that it can be stopped and
// started again. Requests below /test/ make it rotate keys and sign any token. It ends when its
// standard input does, so that it cannot outlive the test that started it.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "host and port to listen at, and of the issuer's URL")
	dir := flag.String("dir", "", "folder of the keys and certificates")
	flag.Parse()
	if err := run(*address, *dir); err != nil {
		log.Fatal(err)
	}
}

func run(address, dir string) error {
	certificate, err := loadCertificate(dir) // certificate.go
	if err != nil {
		return err
	}
	keys, err := loadKeys(dir) // keys.go
	if err != nil {
		return err
	}
	storage := &storage{keys: keys, clients: map[string]client{}, people: people{}} // storage.go
	config := &op.Config{CryptoKey: sha256.Sum256([]byte("for tests")), CodeMethodS256: true, GrantTypeRefreshToken: true, SupportedScopes: []string{"openid", "offline_access", "system/*.cruds"}}
	provider, err := op.NewProvider(config, storage, op.StaticIssuer("https://"+address), op.WithLogger(slog.Default()))
	if err != nil {
		return fmt.Errorf("make the provider: %w", err)
	}
	server := &http.Server{
		Addr: address, Handler: (&control{storage: storage, provider: provider}).handler(), // control.go
		ReadHeaderTimeout: 5 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
