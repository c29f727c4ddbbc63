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
	"github.com/paddock-health/paddock/controllers/secrets"
)

// Reconciler keeps the secrets and the status of Webhooks.
type Reconciler struct {
	// Client reads Webhooks and WebhookEvents from a cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// SecretAccess is where Secrets may be read: everywhere, unless given.
	SecretAccess secrets.Access
	// Namespace is the operator's own.
	Namespace string
	// Now is the clock.
	Now func() time.Time

	// secrets has the Secrets of type v1alpha1.SecretTypeWebhook, at least.
	secrets client.Reader
}

// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents;webhooks,verbs=get;list;watch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks/status,verbs=patch

// Reconcile brings one Webhook's secret and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hook := &v1alpha1.Webhook{}
	if err := r.Client.Get(ctx, req.NamespacedName, hook); err != nil || !hook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen, err := r.update(ctx, hook)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: r.nextLook(seen)}, nil
}

// nextLook is when to look again at Secrets that are not watched.
func (r *Reconciler) nextLook(seen surroundings) time.Duration {
	switch {
	case r.SecretAccess != secrets.Namespaced:
		return 0
	case seen.secret == nil:
		return secrets.RetryInterval
	default:
		return secrets.Interval
	}
}

func (r *Reconciler) update(ctx context.Context, hook *v1alpha1.Webhook) (seen surroundings, err error) {
	if wrote, err := apply.Changed(ctx, r.Client, hook); wrote || err != nil {
		return seen, err // the write wakes the controller again
	}
	seen.secret, err = r.ensureSecret(ctx, hook) // secret.go
	if ref := hook.Spec.HeadersSecretRef; ref != nil && err == nil {
		seen.headers, err = r.secret(ctx, hook.Namespace, ref.Name)
	}
	if apierrors.IsForbidden(err) {
		seen.forbidden, err = secrets.Forbidden(hook.Namespace, r.Namespace), nil
	}
	if err != nil {
		return seen, err
	}
	events := &v1alpha1.WebhookEventList{}
	if err := r.Client.List(ctx, events, client.InNamespace(hook.Namespace)); err != nil {
		return seen, err
	}
	seen.enabled = enables(events.Items, hook.Spec.EventType)
	status := statusOf(hook, seen, r.Now())
	if equality.Semantic.DeepEqual(hook.Status, status) {
		return seen, nil
	}
	return seen, apply.Status(ctx, r.Client, hook, &status)
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
	case secret.Type != v1alpha1.SecretTypeWebhook: // not from the cache, which has no other
		return nil, nil
	}
	return secret, nil
}
