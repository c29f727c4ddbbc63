// Package webhookevent reconciles WebhookEvents. It reports in the status whether events of a
// WebhookEvent's type have receivers and are delivered. It also records when specs changed.
package webhookevent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/announce"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/eventsource"
)

// Reconciler reconciles the status of WebhookEvents.
type Reconciler struct {
	// Client reads from a cache, and writes to kube-apiserver.
	Client client.Client
	// Recorder records Kubernetes Events about WebhookEvents.
	Recorder events.EventRecorder
	// Now is the clock.
	Now func() time.Time
}

// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents;webhooks,verbs=get;list;watch
// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents/status,verbs=patch

// Reconcile reconciles the status of one WebhookEvent.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	event := &v1alpha1.WebhookEvent{}
	if err := r.Client.Get(ctx, req.NamespacedName, event); err != nil || !event.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.update(ctx, event)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Reconciler) update(ctx context.Context, event *v1alpha1.WebhookEvent) error {
	if wrote, err := apply.Changed(ctx, r.Client, event); wrote || err != nil {
		return err // the write triggers another reconcile
	}
	hooks := &v1alpha1.WebhookList{}
	if err := r.Client.List(ctx, hooks, client.InNamespace(event.Namespace)); err != nil {
		return err
	}
	unproduced, err := eventsource.Missing(ctx, r.Client, event.Namespace, event.Spec.EventType)
	if err != nil {
		return err
	}
	status := statusOf(event, hooks.Items, unproduced, r.Now())
	if equality.Semantic.DeepEqual(event.Status, status) {
		return nil
	}
	return apply.Status(ctx, r.Client, event, &status)
}

// SetupWithManager registers the controller. A WebhookEvent is reconciled when it, or a Webhook or
// the spec of a Site in its namespace, changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhookevent").
		For(&v1alpha1.WebhookEvent{}).
		Watches(&v1alpha1.WebhookEvent{}, announce.Handler(r.Recorder)).
		Watches(&v1alpha1.Webhook{}, handler.EnqueueRequestsFromMapFunc(r.neighbours)).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// The priority queue of controller-runtime 0.24 can deadlock when it is shut
		// down (kubernetes-sigs/controller-runtime#3538), and its priorities are not needed.
		WithOptions(controller.Options{UsePriorityQueue: ptr.To(false)}).
		Complete(r)
}

// neighbours returns the WebhookEvents in an object's namespace.
func (r *Reconciler) neighbours(ctx context.Context, object client.Object) []reconcile.Request {
	list := &v1alpha1.WebhookEventList{}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "cannot list the WebhookEvents in the namespace of a changed object", "namespace", object.GetNamespace(), "object", object.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}
