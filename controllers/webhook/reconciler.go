// Package webhook reconciles Webhooks. It creates missing signing secrets, reports in the status
// whether Webhooks can be used, copies their Secrets for the delivery process, and records when
// their specs changed. The delivery process is in package apiserver/delivery.
package webhook

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/eventsource"
	"github.com/paddock-health/paddock/controllers/secrets"
)

// SecretPatience is the value of Reconciler.SecretPatience outside of tests. It is long enough for a loaded
// API server to create the Secret after the Webhook.
const SecretPatience = 10 * time.Second

// Reconciler reconciles the Secrets and the status of Webhooks.
type Reconciler struct {
	// Client reads Webhooks and WebhookEvents from a cache, and writes to kube-apiserver.
	Client client.Client
	// Live reads Secrets from kube-apiserver if SecretAccess is Namespaced.
	Live client.Reader
	// SecretAccess selects the namespaces whose Secrets can be read. If unset, the Secrets of all
	// namespaces can be read.
	SecretAccess secrets.Access
	// Namespace is the namespace of the controller.
	Namespace string
	// SecretsNamespace is the namespace of the Secrets that the controller writes for the delivery
	// process, which reads no other Secrets of webhooks.
	SecretsNamespace string
	// Recorder records Kubernetes Events about Webhooks.
	Recorder events.EventRecorder
	// SecretPatience is how long after the creation of a Webhook the Secret that it names may be
	// missing before the status reports it. The AHDS API creates a Webhook before its Secret, so that
	// the Webhook owns the Secret and no Secret is left behind if the API server ends in between. If
	// unset, a missing Secret is reported immediately.
	SecretPatience time.Duration
	// Now is the clock.
	Now func() time.Time

	// secrets reads at least the Secrets of type v1alpha1.SecretTypeWebhook.
	secrets client.Reader
	// handed reads the Secrets for the delivery process.
	handed client.Reader
}

// +kubebuilder:rbac:groups=paddock.health,resources=webhookevents;webhooks,verbs=get;list;watch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks,verbs=patch
// +kubebuilder:rbac:groups=paddock.health,resources=webhooks/status,verbs=patch

// Reconcile reconciles the Secrets and the status of one Webhook. After a Webhook was deleted, it deletes
// the Secret for the delivery process.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hook := &v1alpha1.Webhook{}
	err := r.Client.Get(ctx, req.NamespacedName, hook)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.withdraw(ctx, req.NamespacedName) // handover.go
	}
	if err != nil || !hook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	seen, err := r.update(ctx, hook)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if seen.wait > 0 {
		return ctrl.Result{RequeueAfter: min(seen.wait, secrets.RetryInterval)}, nil
	}
	return ctrl.Result{RequeueAfter: r.nextLook(seen)}, nil
}

// awaits returns for how long the Secret that a new Webhook names may still be missing without being
// reported. It is zero or negative if the Secret exists or was reported.
func (r *Reconciler) awaits(hook *v1alpha1.Webhook, seen surroundings) time.Duration {
	if seen.secret != nil || seen.forbidden != "" || hook.Spec.SecretRef == nil || len(hook.Status.Conditions) > 0 {
		return 0
	}
	return r.SecretPatience - r.Now().Sub(hook.CreationTimestamp.Time)
}

// nextLook returns the delay before Secrets that are not watched are read again, or zero if all are
// watched.
func (r *Reconciler) nextLook(seen surroundings) time.Duration {
	switch {
	case seen.forbidden != "": // a quota, a policy or a right, none of which is watched
		return secrets.RetryInterval
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
		return seen, err // the write triggers another reconcile
	}
	seen.secret, err = r.ensureSecret(ctx, hook) // secret.go
	if ref := hook.Spec.HeadersSecretRef; ref != nil && err == nil {
		seen.headers, err = r.secret(ctx, hook.Namespace, ref.Name)
	}
	if ref := hook.Spec.ClientCertificateSecretRef; ref != nil && err == nil {
		seen.certificate, err = r.secret(ctx, hook.Namespace, ref.Name)
	}
	if previous := hook.Spec.PreviousSecret; previous != nil && err == nil {
		seen.previous, err = r.secret(ctx, hook.Namespace, previous.Name)
	}
	if refusal := apply.Refusal(err); refusal != "" {
		seen.forbidden = "kube-apiserver rejected a request for a Secret of the Webhook: " + refusal
		if r.SecretAccess == secrets.Namespaced && !errors.Is(err, errCreateSecret) {
			seen.forbidden = secrets.Forbidden(hook.Namespace, r.Namespace)
		}
		err = nil
	}
	if err != nil {
		return seen, err
	}
	types := &v1alpha1.WebhookEventList{}
	if err := r.Client.List(ctx, types, client.InNamespace(hook.Namespace)); err != nil {
		return seen, err
	}
	seen.enabled = enables(types.Items, hook.Spec.EventType)
	if seen.unproduced, err = eventsource.Missing(ctx, r.Client, hook.Namespace, hook.Spec.EventType); err != nil {
		return seen, err
	}
	if seen.wait = r.awaits(hook, seen); seen.wait > 0 {
		return seen, nil
	}
	status := statusOf(hook, seen, r.Now())
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted) {
		err = r.handOver(ctx, hook, seen.handedOver()) // handover.go
	} else {
		err = r.withdraw(ctx, client.ObjectKeyFromObject(hook))
	}
	if err != nil {
		return seen, err
	}
	if equality.Semantic.DeepEqual(hook.Status, status) {
		return seen, nil
	}
	return seen, apply.Status(ctx, r.Client, hook, &status)
}

// secret returns the Secret of type SecretTypeWebhook with the name, or nil if there is none.
func (r *Reconciler) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case secret.Type != v1alpha1.SecretTypeWebhook: // only from kube-apiserver: the cache has no other types
		return nil, nil
	}
	return secret, nil
}
