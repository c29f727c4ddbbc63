// Package webhook reconciles Webhooks: it makes a signing secret for those that name none,
// says in the status whether they can be used, and notes when kubectl's users changed
// them. It delivers nothing.
package webhook

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// Reconciler keeps the secrets and the status of Webhooks.
type Reconciler struct {
	// Client reads Webhooks and WebhookEvents from a cache and writes.
	Client client.Client
	// Now is the clock.
	Now func() time.Time

	// secrets has the Secrets of type v1alpha1.SecretTypeWebhook.
	secrets client.Reader
}

// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents;webhooks,verbs=get;list;watch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create

// Reconcile brings one Webhook's secret and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hook := &v1alpha1.Webhook{}
	if err := r.Client.Get(ctx, req.NamespacedName, hook); err != nil || !hook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.update(ctx, hook)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Reconciler) update(ctx context.Context, hook *v1alpha1.Webhook) error {
	if wrote, err := apply.Changed(ctx, r.Client, hook); wrote || err != nil {
		return err // the write wakes the controller again
	}
	seen := surroundings{}
	var err error
	if seen.secret, err = r.ensureSecret(ctx, hook); err != nil { // secret.go
		return err
	}
	if ref := hook.Spec.HeadersSecretRef; ref != nil {
		if seen.headers, err = r.secret(ctx, hook.Namespace, ref.Name); err != nil {
			return err
		}
	}
	events := &v1alpha1.WebhookEventList{}
	if err := r.Client.List(ctx, events, client.InNamespace(hook.Namespace)); err != nil {
		return err
	}
	seen.enabled = enables(events.Items, hook.Spec.EventType)
	status := statusOf(hook, seen, r.Now())
	if equality.Semantic.DeepEqual(hook.Status, status) {
		return nil
	}
	return apply.Status(ctx, r.Client, hook, &status)
}

// secret is a Secret of the type that webhooks use, nil when there is none of the name.
func (r *Reconciler) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return secret, nil
}
