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

// newWebhookServer returns the server of the admission webhook. It runs in all replicas, not only
// in the leader. It starts without a certificate if there is none yet. With
// --webhook-certificate-names, the leader issues one within seconds.
func newWebhookServer(config *rest.Config, scheme *runtime.Scheme, opts options) (webhook.Server, error) {
	host, port, err := opts.webhookHostPort()
	if err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for the Secret of the webhook server: %w", err)
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
