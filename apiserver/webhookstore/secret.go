package webhookstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/store"
)

// removeTimeout is the time limit of the removal of a Webhook without a Secret. The client waits for it.
const removeTimeout = 5 * time.Second

// Webhooks stores the Webhooks of one namespace and writes their Secrets. It implements
// ahds.WebhookStore. It never reads a Secret. A Webhook names the Secret with its signing key, and is
// the owner of the Secrets that this package created for the Webhook.
type Webhooks struct{ Resources }

// Create implements ahds.ResourceStore. It creates the Webhook first, so that the Webhook can own
// the Secret. If the Secret cannot be created, it deletes the Webhook.
func (w *Webhooks) Create(ctx context.Context, resource webhook.Resource) (made webhook.Resource, secret string, err error) {
	var hook *v1alpha1.Webhook
	made, err = w.create(ctx, resource, func(object client.Object) (err error) {
		if hook, err = asWebhook(object); err == nil {
			hook.Spec.SecretRef = &v1alpha1.WebhookSecretReference{Name: newSecretName(hook)}
		}
		return err
	})
	if err != nil {
		return webhook.Resource{}, "", err
	}
	secret, public, err := w.makeSecret(ctx, hook, hook.Spec.SecretRef.Name)
	if err != nil {
		w.remove(ctx, hook)
		return webhook.Resource{}, "", err
	}
	if public != "" {
		made.PublicKey = public
	}
	return made, secret, nil
}

// remove deletes a Webhook that has no Secret, also if the client has gone away. If that fails, the controller reports
// the missing Secret.
func (w *Webhooks) remove(ctx context.Context, hook *v1alpha1.Webhook) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if w.client.objects.Delete(ctx, hook, client.Preconditions{UID: new(hook.UID)}) == nil {
		w.client.targets.drop(hook, false)
	}
}

// Rotate implements ahds.WebhookStore. Rotate calls check, creates the new Secret, and calls check
// again with the Webhook that it then changes. After each conflict with another write, it calls
// check once more. If a later call or the change of the Webhook fails, the new Secret remains
// unused.
func (w *Webhooks) Rotate(
	ctx context.Context, id string, until time.Time, check func(webhook.Resource) error,
) (rotated webhook.Resource, secret string, err error) {
	object, err := w.find(ctx, id)
	if err != nil {
		return webhook.Resource{}, "", err
	}
	hook, err := asWebhook(object)
	if err != nil {
		return webhook.Resource{}, "", err
	}
	before, err := w.resource(hook)
	if err == nil {
		err = check(before)
	}
	if err != nil {
		return webhook.Resource{}, "", err
	}
	name := newSecretName(hook)
	secret, public, err := w.makeSecret(ctx, hook, name)
	if err != nil {
		return webhook.Resource{}, "", err
	}
	changed, err := w.change(ctx, id, func(object client.Object) error {
		now, err := asWebhook(object)
		if err != nil {
			return err
		}
		resource, err := w.resource(now)
		if err == nil {
			err = check(resource)
		}
		if err == nil && (now.UID != hook.UID || now.Spec.Signing != hook.Spec.Signing) {
			err = &store.PreconditionError{Key: store.Key{Type: w.kind.resource, ID: id}} // the new Secret does not fit the Webhook
		}
		if err != nil {
			return err
		}
		now.Spec.PreviousSecret = &v1alpha1.PreviousWebhookSecret{Name: now.SecretName(), Until: metav1.NewTime(until.Truncate(time.Second))}
		now.Spec.SecretRef = &v1alpha1.WebhookSecretReference{Name: name}
		return nil
	})
	if err != nil {
		return webhook.Resource{}, "", err
	}
	if rotated, err = w.resource(changed); err != nil {
		return webhook.Resource{}, "", err
	}
	rotated.PublicKey = public
	return rotated, secret, nil
}

// newSecretName returns a unique name for a Secret of the Webhook.
func newSecretName(hook *v1alpha1.Webhook) string {
	const longest = 200 // leaves space for the suffix
	name := hook.Name
	return name[:min(len(name), longest)] + "-" + uuid.NewString()[:8]
}

// makeSecret creates a Secret of the Webhook. It returns what the receiver needs: the shared
// secret, or the public key if the Webhook signs with a private key.
func (w *Webhooks) makeSecret(ctx context.Context, hook *v1alpha1.Webhook, name string) (shared, public string, err error) {
	shared = signing.NewShared()
	signs := shared
	if hook.Spec.Signing == v1alpha1.SigningEd25519 {
		shared = ""
		if signs, err = signing.NewPrivate(); err == nil {
			public, err = signing.Public(signs)
		}
		if err != nil {
			return "", "", err
		}
	}
	owner := metav1.NewControllerRef(hook, v1alpha1.GroupVersion.WithKind("Webhook"))
	owner.BlockOwnerDeletion = nil // setting it would require the right to update finalizers
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{*owner}},
		Type:       v1alpha1.SecretTypeWebhook,
		StringData: map[string]string{v1alpha1.WebhookSecretKey: signs},
	}
	if err := w.client.objects.Create(ctx, made, fieldOwner); err != nil {
		return "", "", w.errorOf(operationCreate, err)
	}
	return shared, public, nil
}

func asWebhook(object client.Object) (*v1alpha1.Webhook, error) {
	hook, ok := object.(*v1alpha1.Webhook)
	if !ok {
		return nil, wrongType(object)
	}
	return hook, nil
}
