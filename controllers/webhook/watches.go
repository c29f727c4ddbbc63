package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/announce"
	"github.com/paddock-health/paddock/controllers/secrets"
)

// SetupWithManager registers the controller. A Webhook is reconciled when it or its Secret in
// SecretsNamespace changes, and when a WebhookEvent, a Secret or the spec of a Site in its namespace
// changes. If SecretAccess is Namespaced, the Secrets in its namespace are not watched but read again at
// intervals.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	handed, err := newSecretCache(mgr, r.SecretsNamespace)
	if err != nil {
		return err
	}
	r.handed = handed
	build := ctrl.NewControllerManagedBy(mgr).
		Named("webhook").
		For(&v1alpha1.Webhook{}).
		Watches(&v1alpha1.Webhook{}, announce.Handler(r.Recorder)).
		Watches(&v1alpha1.WebhookEvent{}, handler.EnqueueRequestsFromMapFunc(r.neighbours)).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(handed, client.Object(&corev1.Secret{}), handler.EnqueueRequestsFromMapFunc(webhookOf))).
		// The priority queue of controller-runtime 0.24 can deadlock when it is shut
		// down (kubernetes-sigs/controller-runtime#3538), and its priorities are not needed.
		WithOptions(controller.Options{UsePriorityQueue: ptr.To(false)})
	if r.SecretAccess == secrets.Namespaced {
		r.secrets = r.Live
		return build.Complete(r)
	}
	cached, err := newSecretCache(mgr, metav1.NamespaceAll)
	if err != nil {
		return err
	}
	r.secrets = cached
	return build.
		WatchesRawSource(source.Kind(cached, client.Object(&corev1.Secret{}), handler.EnqueueRequestsFromMapFunc(r.neighbours))).
		Complete(r)
}

// newSecretCache returns a cache of Secrets of type SecretTypeWebhook. The manager's cache selects
// Secrets of another type, and a field selector can select only one type.
func newSecretCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	cached, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", v1alpha1.SecretTypeWebhook)}},
	})
	if err != nil {
		return nil, fmt.Errorf("create a cache of webhook Secrets: %w", err)
	}
	if err := mgr.Add(cached); err != nil {
		return nil, fmt.Errorf("add the cache of webhook Secrets to the manager: %w", err)
	}
	return cached, nil
}

// neighbours returns the Webhooks in an object's namespace.
func (r *Reconciler) neighbours(ctx context.Context, object client.Object) []reconcile.Request {
	list := &v1alpha1.WebhookList{}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "cannot list the Webhooks in the namespace of a changed object", "namespace", object.GetNamespace(), "object", object.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}
