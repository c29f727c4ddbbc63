package webhook

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/controllers/apply"
)

// errCreateSecret is wrapped by the error of a Secret that cannot be created.
var errCreateSecret = errors.New("create Secret")

// ensureSecret returns the Secret with the signing secret. If the spec names none, it creates a
// missing Secret. It returns nil if the Secret that the spec names does not exist, or if the missing
// Secret cannot be created because its name is taken. Errors: errCreateSecret.
func (r *Reconciler) ensureSecret(ctx context.Context, hook *v1alpha1.Webhook) (*corev1.Secret, error) {
	secret, err := r.secret(ctx, hook.Namespace, hook.SecretName())
	if err != nil || secret != nil || hook.Spec.SecretRef != nil {
		return secret, err
	}
	signs := signing.NewShared()
	if hook.Spec.Signing == v1alpha1.SigningEd25519 {
		if signs, err = signing.NewPrivate(); err != nil {
			return nil, err
		}
	}
	owner := metav1.NewControllerRef(hook, v1alpha1.GroupVersion.WithKind("Webhook"))
	owner.BlockOwnerDeletion = nil // would require the right to update finalizers
	secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: hook.SecretName(), OwnerReferences: []metav1.OwnerReference{*owner}},
		Type:       v1alpha1.SecretTypeWebhook,
		Data:       map[string][]byte{v1alpha1.WebhookSecretKey: []byte(signs)},
	}
	err = r.Client.Create(ctx, secret, apply.FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return nil, nil // it has another type, or the cache does not have it yet and its watch triggers a reconcile
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errCreateSecret, hook.SecretName(), err)
	}
	return secret, nil
}

// checkSecret returns an error if a Secret has no valid signing secret. For Ed25519 it returns the
// public key. The error does not contain the secret.
func checkSecret(secret *corev1.Secret, how v1alpha1.Signing) (publicKey string, err error) {
	value := string(secret.Data[v1alpha1.WebhookSecretKey])
	if how == v1alpha1.SigningEd25519 {
		return signing.Public(value)
	}
	return "", signing.CheckShared(value)
}
