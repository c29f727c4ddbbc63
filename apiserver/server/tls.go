package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Listener configures the port of the FHIR and AHDS APIs.
type Listener struct {
	// Address is the address at which the APIs are served, such as :8443.
	Address string
	// CertFile and KeyFile are the paths of the certificate chain and its private key, which are
	// reloaded when they change. If unset, the APIs are served over plain HTTP.
	CertFile, KeyFile string
	// MaxConnections is the maximum number of open connections; further connections wait.
	// MaxConnectionsPerAddress is the maximum for one client address; further connections are closed.
	// 0 means no limit.
	MaxConnections, MaxConnectionsPerAddress int
}

// listen opens the port, with TLS if CertFile is set. It reloads the certificate until ctx ends.
func (l *Listener) listen(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for requests to the FHIR and AHDS APIs: %w", err)
	}
	listener = limitConnections(listener, l.MaxConnections, l.MaxConnectionsPerAddress)
	if l.CertFile == "" {
		return listener, nil
	}
	watcher, err := certwatcher.New(l.CertFile, l.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate %s and its key %s: %w", l.CertFile, l.KeyFile, err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			log.ErrorContext(ctx, "cannot reload the TLS certificate", "certFile", l.CertFile, "keyFile", l.KeyFile, "error", err)
		}
	}()
	return tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: watcher.GetCertificate,
		NextProtos:     []string{"h2", "http/1.1"},
	}), nil
}
