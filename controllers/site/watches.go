package site

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// concurrentReconciles keeps slow deletions, and databases that do not answer, from holding
// up the other Sites.
const concurrentReconciles = 16

// siteIDIndex finds Sites in the cache by the siteID they ask for.
const siteIDIndex = "siteID"

// AddToScheme registers the kinds that the controller works with, beside Sites and claims.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme)
	return builder.AddToScheme(scheme)
}

// databaseObjects are the kinds that a database consists of, with the name that those of a
// Site have.
var databaseObjects = map[client.Object]string{
	&appsv1.StatefulSet{}:           provision.Name,
	&corev1.Pod{}:                   provision.PodName,
	&corev1.PersistentVolumeClaim{}: provision.Name,
	&corev1.Service{}:               provision.Name,
	&policyv1.PodDisruptionBudget{}: provision.Name,
	&networkingv1.NetworkPolicy{}:   provision.Name,
}

// CachedObjects says what the controller's cache holds of a cluster's objects: the Secrets
// that say how to reach databases, of all namespaces or of the operator's alone, the objects
// of the databases that Sites have made, and the Ingresses of the operator's.
func CachedObjects(access secrets.Access, operator string) map[client.Object]cache.ByObject {
	connections := cache.ByObject{Field: fields.OneTermEqualSelector("type", v1alpha1.SecretTypeDSN)}
	if access == secrets.Namespaced {
		connections.Namespaces = map[string]cache.Config{operator: {}}
	}
	cached := map[client.Object]cache.ByObject{
		&corev1.Secret{}:        connections,
		&networkingv1.Ingress{}: {Namespaces: map[string]cache.Config{operator: {}}},
	}
	for object, name := range databaseObjects {
		cached[object] = cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	return cached
}

// SetupWithManager registers the controller. A Site is reconciled when it
// changes, and when a claim that it may be waiting for does.
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
	build := ctrl.NewControllerManagedBy(mgr).
		Named("site").
		For(&v1alpha1.Site{}).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(deleted)).
		Watches(&v1alpha1.SiteClaim{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfSiteClaim)).
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
	for object := range databaseObjects {
		build = build.Watches(object, handler.EnqueueRequestsFromMapFunc(r.neighbours))
	}
	built, err := build.Build(r)
	if err != nil {
		return err
	}
	r.clusters, err = newLateWatch(mgr, built, provision.ClusterKind, cache.Options{
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, provision.Name),
	}, handler.EnqueueRequestsFromMapFunc(r.neighbours))
	if err != nil {
		return err
	}
	r.gateways, err = r.newGatewayAPI(mgr, built)
	return err
}

// neighbours are the Sites of an object's namespace: it is theirs, or, where it is a Site
// that is gone, the namespace may be.
func (r *Reconciler) neighbours(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sites(ctx, client.InNamespace(obj.GetNamespace()))
}

// sitesOfSiteClaim are the Sites that want the siteID or live in the namespace of its holder.
func (r *Reconciler) sitesOfSiteClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.sites(ctx, client.MatchingFields{siteIDIndex: obj.GetName()})
	if claim, ok := obj.(*v1alpha1.SiteClaim); ok {
		ref := claim.Spec.SiteRef
		requests = append(requests, r.sites(ctx, client.InNamespace(ref.Namespace))...)
		// The holder may be gone, and what is left of it changes with the claim.
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
	return requests
}

// sitesOfNamespace are the Sites of a namespace, given it or its claim.
func (r *Reconciler) sitesOfNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sites(ctx, client.InNamespace(obj.GetName()))
}

func (r *Reconciler) sites(ctx context.Context, which client.ListOption) []reconcile.Request {
	list := &v1alpha1.SiteList{}
	if err := r.Client.List(ctx, list, which); err != nil {
		logf.FromContext(ctx).Error(err, "list the Sites that a change concerns")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
