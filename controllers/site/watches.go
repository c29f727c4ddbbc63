package site

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/announce"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// concurrentReconciles is how many Sites, and how many SiteMoves, are reconciled concurrently, so that
// slow deletions and unreachable databases do not delay other Sites.
const concurrentReconciles = 16

// siteIDIndex is the cache index of Sites by siteID.
const siteIDIndex = "siteID"

// AddToScheme registers the kinds that the controller uses, in addition to Sites and claims.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, coordinationv1.AddToScheme)
	return builder.AddToScheme(scheme)
}

// databaseObjects returns which objects a cache of the provisioned databases with a name has. The
// controller may watch only objects with given names, and a watch selects one name, so each name has
// its own cache.
func databaseObjects(name string) map[client.Object]cache.ByObject {
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	return map[client.Object]cache.ByObject{
		&appsv1.StatefulSet{}:           named(name),
		&corev1.Pod{}:                   named(provision.PodName(name)),
		&corev1.PersistentVolumeClaim{}: named(name),
		&corev1.Service{}:               named(name),
		&policyv1.PodDisruptionBudget{}: named(name),
		&networkingv1.NetworkPolicy{}:   named(name),
	}
}

// CachedObjects returns which objects the controller's cache has: Secrets of type SecretTypeDSN,
// the objects of provisioned databases with the first name, and the Ingresses in the operator
// namespace. If access is Namespaced, it has only those Secrets that are in the connections namespace.
func CachedObjects(access secrets.Access, operator, connections string) map[client.Object]cache.ByObject {
	dsns := cache.ByObject{Field: fields.OneTermEqualSelector("type", v1alpha1.SecretTypeDSN)}
	if access == secrets.Namespaced {
		dsns.Namespaces = map[string]cache.Config{connections: {}}
	}
	cached := map[client.Object]cache.ByObject{
		&corev1.Secret{}:        dsns,
		&networkingv1.Ingress{}: {Namespaces: map[string]cache.Config{operator: {}}},
	}
	maps.Copy(cached, databaseObjects(provision.Name))
	return cached
}

// SetupWithManager registers the controller. A Site is reconciled when it, or an object that it
// depends on, changes. The Secrets of pools, and those that CachedObjects omits, are not watched, but
// read again at intervals.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Site{}, siteIDIndex, func(obj client.Object) []string {
		site, ok := obj.(*v1alpha1.Site)
		if !ok {
			return nil
		}
		return []string{site.SiteID()}
	})
	if err != nil {
		return fmt.Errorf("index Sites by siteID: %w", err)
	}
	deleted := predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.SiteClaim{}, siteClaimNamespaceField, func(obj client.Object) []string {
		claim, ok := obj.(*v1alpha1.SiteClaim)
		if !ok {
			return nil
		}
		return []string{claim.Spec.SiteRef.Namespace}
	})
	if err != nil {
		return fmt.Errorf("index SiteClaims by namespace: %w", err)
	}
	if err := r.setupPlacements(ctx, mgr); err != nil { // placements.go
		return err
	}
	build := ctrl.NewControllerManagedBy(mgr).
		Named("site").
		For(&v1alpha1.Site{}).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(deleted)).
		Watches(&v1alpha1.Site{}, announce.Handler(r.Recorder)).
		Watches(&v1alpha1.SiteClaim{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfSiteClaim)).
		Watches(&v1alpha1.SiteClass{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfClass), builder.WithPredicates(otherSpec)). // class.go
		Watches(&v1alpha1.SiteClass{}, handler.EnqueueRequestsFromMapFunc(r.unplacedSitesOfClass)).
		Watches(&v1alpha1.NamespaceClaim{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfNamespace)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfSecret)).
		Watches(&networkingv1.Ingress{}, handler.EnqueueRequestsFromMapFunc(siteOfAnnotation)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfNamespace)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			// The priority queue of controller-runtime 0.24 can deadlock when it is shut
			// down (kubernetes-sigs/controller-runtime#3538), and its priorities are not needed.
			UsePriorityQueue: ptr.To(false),
		})
	neighbours := handler.EnqueueRequestsFromMapFunc(r.neighbours)
	for object := range databaseObjects(provision.Name) {
		build = build.Watches(object, neighbours)
	}
	second, err := addCache(mgr, cache.Options{ByObject: databaseObjects(provision.SecondName)}) // watch_late.go
	if err != nil {
		return fmt.Errorf("make a cache of the databases %s: %w", provision.SecondName, err)
	}
	r.second = second
	for object := range databaseObjects(provision.SecondName) {
		build = build.WatchesRawSource(source.Kind(second, object, neighbours))
	}
	built, err := build.Build(r)
	if err != nil {
		return err
	}
	r.clusters = map[string]*lateWatch{}
	for _, name := range provision.Names {
		r.clusters[name], err = newLateWatch(mgr, built, provision.ClusterKind, cache.Options{
			DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
		}, neighbours)
		if err != nil {
			return err
		}
	}
	r.gateways, err = r.newGatewayAPI(mgr, built)
	return err
}

// neighbours returns the Sites in an object's namespace: the object may belong to them, or be a
// deleted Site whose namespace they can take.
func (r *Reconciler) neighbours(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sites(ctx, client.InNamespace(obj.GetNamespace()))
}

// sitesOfSiteClaim returns the Sites with the siteID, and those in the namespace of its holder.
func (r *Reconciler) sitesOfSiteClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.sites(ctx, client.MatchingFields{siteIDIndex: obj.GetName()})
	if claim, ok := obj.(*v1alpha1.SiteClaim); ok {
		ref := claim.Spec.SiteRef
		requests = append(requests, r.sites(ctx, client.InNamespace(ref.Namespace))...)
		// The holder may have been deleted. The state of its namespace depends on the claim.
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
	return requests
}

// sitesOfNamespace returns the Sites of a namespace, given the Namespace or its NamespaceClaim. If there are
// none, it returns the deleted Site that the NamespaceClaim names, because the claim depends on the namespace.
func (r *Reconciler) sitesOfNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.sites(ctx, client.InNamespace(obj.GetName()))
	if len(requests) > 0 {
		return requests
	}
	claim, err := find[v1alpha1.NamespaceClaim](ctx, r.Client, client.ObjectKey{Name: obj.GetName()})
	if err != nil {
		logf.FromContext(ctx).Error(err, "cannot read the NamespaceClaim of a namespace that has changed", "namespace", obj.GetName())
	}
	if claim == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: claim.Name, Name: claim.Spec.SiteRef.Name}}}
}

func (r *Reconciler) sites(ctx context.Context, which client.ListOption) []reconcile.Request {
	list := &v1alpha1.SiteList{}
	if err := r.Client.List(ctx, list, which); err != nil {
		logf.FromContext(ctx).Error(err, "cannot list the Sites to reconcile after a change of another object", "selector", which)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
