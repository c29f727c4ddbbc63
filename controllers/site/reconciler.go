// Package site reconciles Sites: it claims siteID and namespace, prepares the storage, routes the
// Site's host names to the API servers, and reports the result in the status. It also decides the
// steps of SiteMoves, and has the admission webhook of Sites. It does not read the contents of
// records.
package site

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// Reconciler reconciles Sites.
type Reconciler struct {
	// Client reads from a cache, and writes to kube-apiserver.
	Client client.Client
	// Live reads from kube-apiserver. It is used where a stale cache would cause a wrong decision.
	Live client.Reader
	// Recorder records Kubernetes Events about Sites.
	Recorder events.EventRecorder
	// PublicURL is the base URL of the API servers, without a trailing slash.
	PublicURL string
	// Drain is the delay between the deletion of a Site and that of its records. Within this delay,
	// the API servers must learn of the deletion and end the requests to the site.
	Drain time.Duration
	// Namespace is the namespace of the controller.
	Namespace string
	// ConnectionsNamespace is the namespace of the Secrets by which the controller passes database
	// connections to the API servers. The API servers read no other Secrets.
	ConnectionsNamespace string
	// SecretAccess selects the namespaces whose Secrets can be read. If unset, the Secrets of all
	// namespaces can be read.
	SecretAccess secrets.Access
	// Dial opens connections to the databases of Sites.
	Dial dsn.Dial
	// DatabaseTimeout is the maximum duration of the statements of one step on a database, so that
	// databases that do not respond do not occupy all workers. A migration of the schema must end within
	// it.
	DatabaseTimeout time.Duration
	// DialIssuers opens connections to the issuers of Sites.
	DialIssuers discovery.Dial
	// Lookup resolves the host names of databases. If nil, the system's resolver is used.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// PostgresImage and CloudNativePGImage are the images of provisioned databases with the engines
	// StatefulSet and CloudNativePG, without a tag.
	PostgresImage, CloudNativePGImage string
	// Exposure has the host names and Gateways that Sites can use, and the Service to route to.
	Exposure exposure.Options
	// Identity is the identity of this process in Lease, the Lease of the leader election. If it is empty, there
	// is no leader election.
	Identity string
	// Lease is the name of the Lease of the leader election. It is used only if Identity is set.
	Lease client.ObjectKey
	// Now is the clock.
	Now func() time.Time

	placements placements
	// second caches the objects of databases with SecondName.
	second client.Reader
	// clusters are the watches of Clusters of CloudNativePG, by their name.
	clusters map[string]*lateWatch
	gateways *gatewayAPI
	issuers  issuerChecks
}

// +kubebuilder:rbac:groups=paddock.health,resources=sites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=paddock.health,resources=sites/status,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=siteclaims;namespaceclaims,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=records.paddock.health,resources=records;recordhistories;recordclaims;auditsegments;webhookdeliveries;webhookdeliverylogs,verbs=list;deletecollection
// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-connections,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch

// The objects of a provisioned database all have the same name, one of two.
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=postgresql.cnpg.io,resources=clusters,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=postgresql.cnpg.io,resources=scheduledbackups,resourceNames=paddock-postgres;paddock-postgres-b,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,resourceNames=paddock-postgres-0;paddock-postgres-b-0,verbs=get;list;watch

// Rights on the Secrets in Sites' namespaces are in separate roles, which are bound cluster-wide or
// by the owners of namespaces: config/rbac/controller_secrets.yaml, site_secrets_role.yaml.

// Exposure: Ingresses are in the controller's namespace, the HTTPRoute is in that of the Site.
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,namespace=paddock-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,namespace=paddock-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,resourceNames=paddock-facade,verbs=get;list;watch;create;patch;delete

// Reconcile reconciles the claims, storage and exposure of one Site with its spec, and reports them in
// its status. It does nothing for a Site with PausedAnnotation, not even if the Site is being deleted.
// For a Site that does not exist, it removes what was published for the Site.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &v1alpha1.Site{}
	switch err := r.Client.Get(ctx, req.NamespacedName, site); {
	case apierrors.IsNotFound(err):
		r.issuers.forget(req.NamespacedName) // issuers.go
		return ctrl.Result{}, errors.Join(
			r.withdrawConnection(ctx, req.NamespacedName), // connection.go
			r.withdrawExposure(ctx, req.NamespacedName),   // expose.go
			r.markNamespace(ctx, req.Namespace, nil),      // namespace.go
			r.releaseNamespace(ctx, req.Namespace),        // namespace.go
		)
	case err != nil:
		return ctrl.Result{}, err
	}
	if _, paused := site.Annotations[v1alpha1.PausedAnnotation]; paused {
		return ctrl.Result{}, nil
	}
	s := &scope{site: site}
	next, err := s.run(ctx,
		phase{"reading the SiteClass", r.completeByClass}, // class.go: className and storage of a new Site; inherited fields
		phase{"deleting the site", r.finalize},            // deletion.go: records, then claims, then the finalizer
		phase{"setting the finalizer", r.ensureFinalizer}, // finalizer.go: only with deletionPolicy Delete
		phase{"reading the Secret", r.mayReadSecret},      // secrets.go: if the namespace's owner must allow it
		phase{"claiming siteID and namespace", r.claim},   // claim.go: SiteClaim and NamespaceClaim, with the site key
		phase{"protecting the namespace", r.protect},      // namespace.go: a label that prevents its deletion with retained data
		phase{"checking the storage", r.storage},          // storage.go, postgres.go: no foreign records; a migrated database
		phase{"exposing the site", r.expose},              // expose.go: Ingress or HTTPRoute
		phase{"checking the issuers", r.checkIssuers},     // issuers.go: whether their keys can be fetched
	)
	if next != leave {
		err = errors.Join(err, r.patchStatus(ctx, s)) // status.go
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.requeueAfter}, nil
}
