package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// listen opens the port of the FHIR API, with TLS if there is a certificate. The
// certificate is read again whenever its file changes.
func (s *server) listen(ctx context.Context) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.listenAddress)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if s.options.certFile == "" {
		return listener, nil
	}
	watcher, err := certwatcher.New(s.options.certFile, s.options.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			s.log.ErrorContext(ctx, "watch the TLS certificate", "error", err)
		}
	}()
	return tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: watcher.GetCertificate,
		NextProtos:     []string{"h2", "http/1.1"},
	}), nil
}
