// Package site reconciles Sites: it claims the siteID and the namespace for one
// Site, makes the storage ready, leads the address that it asks for to the API servers,
// and says in the status what came of it. It serves no request and reads no record.
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
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// Reconciler brings Sites to what their specs ask for.
type Reconciler struct {
	// Client reads Sites from a cache and writes.
	Client client.Client
	// Live reads past the cache, where an old answer could hurt.
	Live client.Reader
	// Recorder records events of Sites.
	Recorder events.EventRecorder
	// PublicURL is the address under which API servers are reached, without a trailing slash.
	PublicURL string
	// Drain is how long after a Site's deletion its records may still be written:
	// API servers have heard of the deletion, and their last requests are done.
	Drain time.Duration
	// Namespace is the operator's own. Only there do API servers read Secrets.
	Namespace string
	// SecretAccess is where Secrets of other namespaces may be read: everywhere, unless given.
	SecretAccess secrets.Access
	// Dial reaches the databases that Sites name, or have.
	Dial dsn.Dial
	// Lookup finds the addresses of their hosts. Nil: as the system does.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// PostgresImage and CloudNativePGImage are the images of databases that Sites have
	// made, without a tag.
	PostgresImage, CloudNativePGImage string
	// Exposure says which addresses Sites may have, and how they lead to the API servers.
	Exposure exposure.Options
	// Now is the clock.
	Now func() time.Time

	clusters *lateWatch
	gateways *gatewayAPI
}

// +kubebuilder:rbac:groups=paddock.health,resources=sites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=paddock.health,resources=sites/status,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=siteclaims;namespaceclaims,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=records.paddock.health,resources=records;recordhistories;recordclaims,verbs=list;deletecollection
// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch

// A database of a Site: all of its objects have one name.
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,resourceNames=paddock-postgres,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,resourceNames=paddock-postgres,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,resourceNames=paddock-postgres,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,resourceNames=paddock-postgres,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=postgresql.cnpg.io,resources=clusters,resourceNames=paddock-postgres,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=postgresql.cnpg.io,resources=scheduledbackups,resourceNames=paddock-postgres,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,resourceNames=paddock-postgres-0,verbs=get;list;watch

// The Secrets of Sites' namespaces are in roles of their own, which are bound everywhere or by
// the owners of namespaces: config/rbac/controller_secrets.yaml, site_secrets_role.yaml.

// The way to a Site: in the operator's namespace for all of them, and a route of one name in
// the Site's own.
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,namespace=paddock-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,namespace=paddock-system,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,resourceNames=paddock-facade,verbs=get;list;watch;create;patch;delete

// Reconcile brings one Site's claims, storage and address to what its spec asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &v1alpha1.Site{}
	switch err := r.Client.Get(ctx, req.NamespacedName, site); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, errors.Join(
			r.withdrawConnection(ctx, req.NamespacedName), // connection.go
			r.withdrawExposure(ctx, req.NamespacedName),   // expose.go
			r.markNamespace(ctx, req.Namespace, nil),      // namespace.go
		)
	case err != nil:
		return ctrl.Result{}, err
	}
	if _, paused := site.Annotations[v1alpha1.PausedAnnotation]; paused {
		return ctrl.Result{}, nil
	}
	s := &scope{site: site}
	next, err := s.run(ctx,
		phase{"deleting the site", r.finalize},            // deletion.go: records, then claims, then the finalizer
		phase{"setting the finalizer", r.ensureFinalizer}, // finalizer.go: present only with deletionPolicy Delete
		phase{"reading the Secret", r.mayReadSecret},      // secrets.go: where the namespace's owner has to allow it
		phase{"claiming siteID and namespace", r.claim},   // claim.go: who holds them, the site key
		phase{"protecting the namespace", r.protect},      // namespace.go: not to be deleted with data that is to stay
		phase{"checking the storage", r.storage},          // storage.go, postgres.go: no records but the claim's own; a database with our tables
		phase{"exposing the site", r.expose},              // expose.go: the way from the address that it asks for
	)
	if next != leave {
		err = errors.Join(err, r.patchStatus(ctx, s)) // status.go
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.requeueAfter}, nil
}
