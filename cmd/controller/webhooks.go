package main

import (
	"crypto/tls"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/paddock-health/paddock/controllers/certificate"
)

// newWebhookServer makes the server that kube-apiserver asks. It runs in every replica, whoever
// leads, and begins without a certificate: in the first seconds there is none.
func newWebhookServer(config *rest.Config, scheme *runtime.Scheme, opts options) (webhook.Server, error) {
	host, port, err := opts.webhookHostPort()
	if err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	source := &certificate.Source{
		Live: live, Secret: client.ObjectKey{Namespace: opts.namespace, Name: opts.webhookSecret}, Now: time.Now,
	}
	return webhook.NewServer(webhook.Options{
		Host: host, Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.GetCertificate = source.GetCertificate
		}},
	}), nil
}
