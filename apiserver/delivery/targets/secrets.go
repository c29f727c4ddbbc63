package targets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// secretError describes the problem of a Secret.
type secretError struct{ text string }

func (p *secretError) Error() string { return p.text }

// errNotHandedOver is returned if the controller has not processed the Webhook's current settings
// yet. The Webhook may be valid.
var errNotHandedOver = errors.New("the controller has not copied the Secrets of the webhook yet")

// handedOver returns the content of a Webhook's Secrets, as the controller stored it for the
// current settings. Content for older settings is not used, because they may have another receiver.
// Errors: errNotHandedOver, *secretError, those of the cache.
func (s site) handedOver(ctx context.Context, hook *v1alpha1.Webhook) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: s.options.SecretsNamespace, Name: v1alpha1.DeliverySecretName(hook.Namespace, hook.Name)}
	err := s.hooks.Get(ctx, name, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if err == nil && secret.Annotations[v1alpha1.WebhookRevisionAnnotation] == hook.Revision() {
		return secret.Data, nil
	}
	accepted := meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == hook.Generation {
		return nil, &secretError{accepted.Message}
	}
	return nil, errNotHandedOver
}
