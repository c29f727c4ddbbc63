package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/delivery/targets"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/server"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// newServer returns the server of the APIs.
func newServer(ctx context.Context, o *options, log *slog.Logger) (*server.Server, error) {
	config, tracing, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	engine, err := cluster.New(config, cluster.Options{
		MaxRecords: o.maxRecords, MaxBytes: o.maxBytes, Extractor: extraction.Extractor{}, AfterStep: failpoint,
	})
	if err != nil {
		return nil, err
	}
	registry, err := sites.New(config, sites.Options{
		Cluster: engine, Namespace: o.connectionsNamespace, Dial: egress.NewDialer(o.postgresNetworks).DialContext,
		DialIssuers: egress.NewDialer(o.issuerNetworks).DialContext,
		Tracer:      tracing.Statements(),
		Extractor:   extraction.Extractor{},
	})
	if err != nil {
		return nil, err
	}
	lines, err := audit.OpenLines(o.auditLogPath)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path: %w", err)
	}
	serving := server.Config{
		Kubernetes: config, Engine: engine, Sites: registry, Tracing: tracing, AuditLog: lines, Keys: o.keys.opened,
		PublicURL: o.publicURL, MaxRequestsInflight: o.maxInflight, Health: o.health(), Log: log,
	}
	if o.serve[serveFacade] {
		serving.Listener = &o.listener
	}
	if o.serve[serveAggregated] {
		serving.Aggregated = &aggregated.Config{
			Kubeconfig: o.kubeconfig, Address: o.aggregated.address, CertFile: o.aggregated.certFile, KeyFile: o.aggregated.keyFile,
		}
	}
	return server.New(serving)
}

// runDelivery sends events to webhooks until ctx ends.
func runDelivery(ctx context.Context, o *options, log *slog.Logger) error {
	config, tracing, err := connect(ctx, o)
	if err != nil {
		return err
	}
	webhooks, err := targets.New(config, targets.Options{SecretsNamespace: o.delivery.webhooksNamespace})
	if err != nil {
		return err
	}
	counted, err := delivery.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	sender := delivery.NewSender(delivery.SenderConfig{
		Egress: delivery.Egress{
			Allowed: o.delivery.webhookNetworks, Refused: o.delivery.clusterNetworks, ClusterDomain: o.delivery.clusterDomain,
			Proxy: http.ProxyFromEnvironment,
		},
		UserAgent: "Paddock-Webhooks/" + version, Metrics: counted, Log: log,
	})
	client, err := objects.New(config)
	if err != nil {
		return err
	}
	registry, err := sites.New(config, sites.Options{
		Namespace: o.connectionsNamespace, Dial: egress.NewDialer(o.postgresNetworks).DialContext, Tracer: tracing.Statements(),
		Extractor: extraction.Extractor{},
		Delivery:  &sites.Delivery{Objects: client, Sender: server.NewSenders(sender, webhooks)},
	})
	if err != nil {
		return err
	}
	runner, err := deliveries.New(config, deliveries.Options{Open: registry.Target, Retention: registry.DeliveryRetention, Namespace: o.delivery.namespace})
	if err != nil {
		return err
	}
	return server.Deliver(ctx, server.DeliveryConfig{
		Kubernetes: config, Sites: registry, Runner: runner, Webhooks: webhooks, Namespace: o.delivery.namespace, Tracing: tracing, Health: o.health(), Log: log,
	})
}

// connect returns the configuration of clients for kube-apiserver, and starts tracing, which the
// clients use.
func connect(ctx context.Context, o *options) (*rest.Config, *server.Tracing, error) {
	config, err := clientConfig(o.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	tracing, err := server.StartTracing(ctx, version)
	if err != nil {
		return nil, nil, err
	}
	tracing.Client(config)
	return config, tracing, nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the cluster: %w (outside a pod, give --kubeconfig)", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	return config, nil
}
