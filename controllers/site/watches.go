package site

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
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
)

// concurrentReconciles keeps slow deletions, and databases that do not answer, from holding
// up the other Sites.
const concurrentReconciles = 16

// siteIDIndex finds Sites in the cache by the siteID they ask for.
const siteIDIndex = "siteID"

// CachedObjects says what the controller's cache holds of the Secrets of a cluster: those
// that say how to reach databases.
func CachedObjects() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", v1alpha1.SecretTypeDSN)},
	}
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
	return ctrl.NewControllerManagedBy(mgr).
		Named("site").
		For(&v1alpha1.Site{}).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(deleted)).
		Watches(&v1alpha1.SiteClaim{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfSiteClaim)).
		Watches(&v1alpha1.NamespaceClaim{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfNamespaceClaim)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfSecret)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			// The priority queue of controller-runtime 0.24 can deadlock when it is shut
			// down (kubernetes-sigs/controller-runtime#3538), and its priorities are not needed.
			UsePriorityQueue: ptr.To(false),
		}).
		Complete(r)
}

// neighbours are the other Sites of a Site's namespace, which may be theirs once it is gone.
func (r *Reconciler) neighbours(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sites(ctx, client.InNamespace(obj.GetNamespace()))
}

// sitesOfSiteClaim are the Sites that want the siteID or live in the namespace of its holder.
func (r *Reconciler) sitesOfSiteClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.sites(ctx, client.MatchingFields{siteIDIndex: obj.GetName()})
	if claim, ok := obj.(*v1alpha1.SiteClaim); ok {
		requests = append(requests, r.sites(ctx, client.InNamespace(claim.Spec.SiteRef.Namespace))...)
	}
	return requests
}

func (r *Reconciler) sitesOfNamespaceClaim(ctx context.Context, obj client.Object) []reconcile.Request {
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
