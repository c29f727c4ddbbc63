package webhook

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// maxSecrets is the maximum total size in bytes of the Secrets of a Webhook. They are copied into
// one Secret, which Kubernetes limits to 1 MiB. Beyond it, the Webhook is not accepted.
const maxSecrets = 512 << 10

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-webhooks,verbs=get;list;watch;create;patch;delete

// handedOver returns the data of the delivery process's Secret. If the Secret of the header fields
// also has a signing secret, certificate or private key, these do not become header fields.
func (seen surroundings) handedOver() map[string][]byte {
	data := map[string][]byte{}
	if seen.headers != nil {
		for name, value := range seen.headers.Data {
			data[name] = value
		}
	}
	take := func(key string, from *corev1.Secret, name string) {
		delete(data, key)
		if from != nil && len(from.Data[name]) > 0 {
			data[key] = from.Data[name]
		}
	}
	take(v1alpha1.WebhookSecretKey, seen.secret, v1alpha1.WebhookSecretKey)
	take(v1alpha1.WebhookPreviousSecretKey, seen.previous, v1alpha1.WebhookSecretKey)
	take(v1alpha1.WebhookCertificateKey, seen.certificate, v1alpha1.WebhookCertificateKey)
	take(v1alpha1.WebhookPrivateKeyKey, seen.certificate, v1alpha1.WebhookPrivateKeyKey)
	return data
}

func (r *Reconciler) deliverySecret(hook types.NamespacedName) client.ObjectKey {
	return client.ObjectKey{Namespace: r.SecretsNamespace, Name: v1alpha1.DeliverySecretName(hook.Namespace, hook.Name)}
}

// handOver writes the delivery process's Secret, unless it is unchanged.
func (r *Reconciler) handOver(ctx context.Context, hook *v1alpha1.Webhook, data map[string][]byte) error {
	name := r.deliverySecret(client.ObjectKeyFromObject(hook))
	annotations := map[string]string{
		v1alpha1.WebhookAnnotation:         client.ObjectKeyFromObject(hook).String(),
		v1alpha1.WebhookRevisionAnnotation: hook.Revision(),
	}
	current := &corev1.Secret{}
	err := r.handed.Get(ctx, name, current)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && equality.Semantic.DeepEqual(current.Data, data) && equality.Semantic.DeepEqual(current.Annotations, annotations) {
		return nil
	}
	config := corev1ac.Secret(name.Name, name.Namespace).
		WithType(v1alpha1.SecretTypeWebhook).WithAnnotations(annotations).WithData(data)
	if err := r.Client.Apply(ctx, config, apply.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Secret %s: %w", name, err)
	}
	return nil
}

// withdraw deletes the delivery process's Secret of a Webhook that was deleted or is not accepted.
func (r *Reconciler) withdraw(ctx context.Context, hook types.NamespacedName) error {
	current := &corev1.Secret{}
	if err := r.handed.Get(ctx, r.deliverySecret(hook), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := r.Client.Delete(ctx, current, client.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion})
	return client.IgnoreNotFound(err)
}

// webhookOf returns the Webhook of a Secret of the delivery process, even if that Webhook no longer
// exists.
func webhookOf(_ context.Context, object client.Object) []reconcile.Request {
	namespace, name, found := strings.Cut(object.GetAnnotations()[v1alpha1.WebhookAnnotation], "/")
	if !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
