package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/delivery/targets"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// DeliveryConfig has the parts and settings of a process that delivers events. All except Tracing
// are required.
type DeliveryConfig struct {
	Kubernetes *rest.Config
	// Sites delivers the events that are stored in Postgres.
	Sites *sites.Sites
	// Runner delivers the events that are stored as objects of the cluster.
	Runner Runner
	// Webhooks are the receivers of events. Deliver writes the state of their deliveries to the
	// status of the Webhook objects.
	Webhooks *targets.Targets
	// Namespace is the namespace of the Lease of the process that reports the state of webhooks.
	Namespace string
	Tracing   *Tracing
	Health    Health
	Log       *slog.Logger
}

// Runner delivers the events of one engine. Run delivers until ctx ends, and then waits for the
// attempts in flight.
type Runner interface {
	Run(ctx context.Context)
}

// Deliver sends events to webhooks until ctx ends or a part fails, and then waits for the attempts in
// flight.
func Deliver(ctx context.Context, config DeliveryConfig) error {
	if err := metrics.Registry.Register(config.Webhooks); err != nil {
		return err
	}
	var ready readiness
	ready.recordsKnown()
	health := healthServer(config.Health, ready.missing, metrics.Registry)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", health.Addr)
	if err != nil {
		return fmt.Errorf("listen for probes and metrics: %w", err)
	}
	// Attempts in flight still need the caches and queues, so these outlive ctx.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, failed := errgroup.WithContext(background)
	group.Go(func() error { return serve(health, listener) })
	stopping, stop := context.WithCancel(failed)
	defer stop()
	group.Go(func() error { return config.Webhooks.Run(failed) })
	group.Go(func() error {
		return lead(failed, config.Kubernetes, config.Namespace, func(ctx context.Context) { config.Webhooks.KeepReporting(ctx, config.Sites.Health) })
	})
	// Events are sent only after all webhooks are known. The webhooks determine the receivers, and whether
	// events are sent in order.
	group.Go(func() error {
		if !config.Webhooks.WaitForSync(stopping) || stopping.Err() != nil {
			return nil //nolint:nilerr // the process is stopping
		}
		ready.webhooksKnown()
		return config.Sites.Run(failed, ready.sitesKnown)
	})
	var sending errgroup.Group
	sending.Go(func() error {
		if config.Webhooks.WaitForSync(stopping) {
			config.Runner.Run(stopping)
		}
		return nil
	})
	config.Log.InfoContext(ctx, "delivering events to webhooks", "leaseNamespace", config.Namespace)
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	ready.stop()
	stop()
	sending.Go(func() error { config.Sites.CloseQueues(); return nil })
	err = sending.Wait()
	drained, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer done()
	err = errors.Join(err, health.Shutdown(drained), config.Tracing.stop(drained))
	cancel()
	return errors.Join(err, group.Wait())
}

// NewSenders returns a function that returns the sites.Sender of a Site, which sends events to the
// webhooks of the Site.
func NewSenders(sender *delivery.Sender, webhooks *targets.Targets) func(namespace, siteID string, log delivery.Log) sites.Sender {
	return func(namespace, siteID string, log delivery.Log) sites.Sender {
		return siteSender{sender.Site(siteID, webhooks.Site(namespace), log), webhooks, namespace}
	}
}

// siteSender sends the events of one Site. It implements sites.Sender.
type siteSender struct {
	delivery.Attempter
	hooks     *targets.Targets
	namespace string
}

// After implements sites.Sender.
func (siteSender) After(state delivery.State, attempt delivery.Attempt) delivery.State {
	return delivery.After(state, attempt)
}

// Ordered implements sites.Sender.
func (s siteSender) Ordered(webhook string) bool { return s.hooks.Ordered(s.namespace, webhook) }

// The Lease of the process that reports the state of webhooks. Renewals are tried every
// reportRetryPeriod. A process that could not renew for reportRenewDeadline stops reporting. Another
// process takes over reportLeaseDuration after the last renewal.
const (
	reportLease         = "paddock-delivery-report"
	reportLeaseDuration = 30 * time.Second
	reportRenewDeadline = 20 * time.Second
	reportRetryPeriod   = 5 * time.Second
)

// lead runs work while this process holds the Lease, until ctx ends. At most one process holds it. The
// context of work ends when the process no longer holds the Lease. Another process can get it before work
// has returned, but this process does not run work twice at the same time.
func lead(ctx context.Context, config *rest.Config, namespace string, work func(context.Context)) error {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of the Lease %s/%s: %w", namespace, reportLease, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the host name, for the holder of the Lease %s/%s: %w", namespace, reportLease, err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: reportLease}, Client: clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d", host, os.Getpid())},
	}
	var working sync.Mutex // leaderelection does not wait for OnStartedLeading
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: reportLeaseDuration, RenewDeadline: reportRenewDeadline, RetryPeriod: reportRetryPeriod,
			ReleaseOnCancel: true, Name: reportLease,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					working.Lock()
					defer working.Unlock()
					work(ctx)
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	return nil
}
