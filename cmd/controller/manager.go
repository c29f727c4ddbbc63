package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/controllers/announce"
	"github.com/paddock-health/paddock/controllers/certificate"
	"github.com/paddock-health/paddock/controllers/pagetoken"
	"github.com/paddock-health/paddock/controllers/site"
	"github.com/paddock-health/paddock/controllers/siteclass"
	"github.com/paddock-health/paddock/controllers/webhook"
	"github.com/paddock-health/paddock/controllers/webhookevent"
)

const (
	leaseName = "paddock-controller"
	// renewDeadline is how long the leader tries to renew its Lease. Other replicas can take the Lease 15 s
	// after its last renewal. A request to renew the Lease has half of renewDeadline.
	renewDeadline = 10 * time.Second
	// drain is the delay between the deletion of a Site and that of its records. It is longer than an
	// API server needs to learn of the deletion and to finish its requests.
	drain = 5 * time.Second
	// databaseTimeout is longer than the attempts of a migration that waits for locks (20 s).
	databaseTimeout = time.Minute
	// keepFormerConnections is how long the connections of releases up to v0.1 are kept for their API
	// servers. It is longer than an upgrade needs to replace these API servers.
	keepFormerConnections = 15 * time.Minute
	// cachesWait is how long a readiness probe waits for the caches before it fails.
	cachesWait = time.Second

	// The names of the Secret that the API servers mount for their certificate, the Secret of the
	// certificate authority, and the APIService of the aggregated API.
	certificateSecret = "paddock-apiserver-tls"
	authoritySecret   = "paddock-authority"
	apiService        = "v1alpha1.r4.fhir.paddock.health"

	// The names of the Secret with the certificate of the webhook server, and of its
	// ValidatingWebhookConfiguration.
	webhookSecret        = "paddock-controller-tls"
	webhookConfiguration = "paddock-controller"
)

// The Lease, and the events about leader election, are in the controller's namespace.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=paddock-system,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=paddock-controller,namespace=paddock-system,verbs=get;update
// +kubebuilder:rbac:groups="",resources=events,namespace=paddock-system,verbs=create;patch

func newManager(ctx context.Context, config *rest.Config, opts options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, site.AddToScheme, certificate.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API types: %w", err)
		}
	}
	webhooks, err := newWebhookServer(config, scheme, opts) // webhooks.go
	if err != nil {
		return nil, err
	}
	lock, err := newLock(config, scheme, opts.namespace) // election.go
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                              scheme,
		Cache:                               cache.Options{ByObject: site.CachedObjects(opts.secrets, opts.namespace, opts.connectionsNamespace)},
		LeaderElection:                      opts.leaderElect,
		LeaderElectionID:                    leaseName, // of the lock below, for the label of leader_election_master_status
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		RenewDeadline:                       ptr.To(renewDeadline),
		Metrics:                             server.Options{BindAddress: opts.metricsAddress},
		WebhookServer:                       webhooks,
		HealthProbeBindAddress:              opts.healthAddress,
		LivenessEndpointName:                "/livez",
		ReadinessEndpointName:               "/readyz",
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	recorder := announce.NewRecorder(mgr.GetEventRecorder("paddock-controller"), mgr.GetCache())
	reconciler := &site.Reconciler{
		Client:               mgr.GetClient(),
		Live:                 mgr.GetAPIReader(),
		Recorder:             recorder,
		PublicURL:            opts.publicURL,
		Drain:                drain,
		Namespace:            opts.namespace,
		ConnectionsNamespace: opts.connectionsNamespace,
		Dial:                 egress.NewDialer(opts.postgresNetworks).DialContext,
		DatabaseTimeout:      databaseTimeout,

		DialIssuers:        egress.NewDialer(opts.issuerNetworks).DialContext,
		SecretAccess:       opts.secrets,
		PostgresImage:      opts.postgresImage,
		CloudNativePGImage: opts.cloudNativePGImage,
		Exposure:           opts.exposure.forSites(opts.namespace),
		Lease:              client.ObjectKey{Namespace: opts.namespace, Name: leaseName},
		Now:                time.Now,
	}
	if opts.leaderElect {
		reconciler.Identity = lock.Identity()
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("set up the Site controller: %w", err)
	}
	if err := (&site.MoveReconciler{Reconciler: reconciler}).SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the SiteMove controller: %w", err)
	}
	classes := &siteclass.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: opts.namespace, CloudNativePGImage: opts.cloudNativePGImage, Now: time.Now,
	}
	if err := classes.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the SiteClass controller: %w", err)
	}
	if err := mgr.Add(&site.FormerConnections{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), From: opts.namespace, To: opts.connectionsNamespace, Keep: keepFormerConnections,
	}); err != nil {
		return nil, fmt.Errorf("set up the copy of connections to their namespace: %w", err)
	}
	if err := metrics.Registry.Register(&site.Collector{Sites: mgr.GetCache(), Elected: mgr.Elected()}); err != nil {
		return nil, fmt.Errorf("set up the metrics of Sites: %w", err)
	}
	if err := (&webhookevent.Reconciler{Client: mgr.GetClient(), Recorder: recorder, Now: time.Now}).SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the WebhookEvent controller: %w", err)
	}
	hooks := &webhook.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), SecretAccess: opts.secrets, Namespace: opts.namespace,
		SecretsNamespace: opts.webhooksNamespace, SecretPatience: webhook.SecretPatience, Recorder: recorder, Now: time.Now,
	}
	if err := hooks.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the Webhook controller: %w", err)
	}
	if opts.webhookAddress != "0" {
		validator := &site.Validator{Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Namespace: opts.namespace}
		if err := validator.SetupWithManager(mgr); err != nil {
			return nil, fmt.Errorf("set up the admission webhook: %w", err)
		}
	}
	if serving := servingOf(opts); len(serving) > 0 {
		keeper := &certificate.Keeper{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: opts.namespace,
			Authority: authoritySecret, Serving: serving, Now: time.Now,
		}
		if err := mgr.Add(keeper); err != nil {
			return nil, fmt.Errorf("set up the certificates: %w", err)
		}
	}
	if opts.pageTokenSecret != "" {
		keeper := &pagetoken.Keeper{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder,
			Secret: client.ObjectKey{Namespace: opts.namespace, Name: opts.pageTokenSecret}, Now: time.Now,
		}
		if err := mgr.Add(keeper); err != nil {
			return nil, fmt.Errorf("set up the keys of tokens: %w", err)
		}
	}
	if err := addHealthChecks(mgr); err != nil {
		return nil, fmt.Errorf("set up the health checks: %w", err)
	}
	return mgr, nil
}

// servingOf returns the certificates that the controller issues, or none if the options name no DNS
// names.
func servingOf(opts options) []certificate.Serving {
	var all []certificate.Serving
	if len(opts.certificateNames) > 0 {
		all = append(all, certificate.Serving{Secret: certificateSecret, DNSNames: opts.certificateNames, APIService: apiService})
	}
	if len(opts.webhookNames) > 0 {
		all = append(all, certificate.Serving{Secret: opts.webhookSecret, DNSNames: opts.webhookNames, ValidatingWebhooks: webhookConfiguration})
	}
	return all
}

func addHealthChecks(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), cachesWait)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	})
}
