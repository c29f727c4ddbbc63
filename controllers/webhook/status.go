package webhook

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// surroundings are what a Webhook's status depends on beside itself.
type surroundings struct {
	// secret and headers are nil where they are not there.
	secret, headers *corev1.Secret
	// forbidden says, unless empty, that they may not be read.
	forbidden string
	// enabled: a WebhookEvent switches the type on.
	enabled bool
}

// verdict is what one condition says.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// enables reports whether any WebhookEvent switches a type on.
func enables(events []v1alpha1.WebhookEvent, eventType v1alpha1.EventType) bool {
	return slices.ContainsFunc(events, func(event v1alpha1.WebhookEvent) bool {
		return event.Spec.EventType == eventType && event.Spec.Enabled != nil && *event.Spec.Enabled && event.DeletionTimestamp.IsZero()
	})
}

// statusOf is the status that a Webhook is to have.
func statusOf(hook *v1alpha1.Webhook, seen surroundings, now time.Time) v1alpha1.WebhookStatus {
	status := *hook.Status.DeepCopy()
	status.ObservedGeneration, status.SecretName = hook.Generation, hook.SecretName()
	accepted, publicKey := accept(hook, seen)
	status.PublicKey = publicKey
	set := func(condition string, v verdict) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition, Status: v.status, Reason: v.reason, Message: v.message,
			ObservedGeneration: hook.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	set(v1alpha1.ConditionAccepted, accepted)
	set(v1alpha1.ConditionActive, activate(hook, accepted, seen.enabled))
	return status
}

// accept says whether the settings can be used. No message has a secret in it.
func accept(hook *v1alpha1.Webhook, seen surroundings) (v verdict, publicKey string) {
	refuse := func(reason, format string, args ...any) verdict {
		return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	if extensions := hook.Spec.Extensions; extensions != nil && len(extensions.Raw) > v1alpha1.MaxExtensions {
		return refuse(v1alpha1.ReasonExtensionsTooLarge, "extensions has %d bytes; at most %d are taken", len(extensions.Raw), v1alpha1.MaxExtensions), ""
	}
	if seen.forbidden != "" {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretsForbidden, seen.forbidden}, ""
	}
	if seen.secret == nil {
		return refuse(v1alpha1.ReasonSecretNotFound, "there is no Secret %s of type %s", hook.SecretName(), v1alpha1.SecretTypeWebhook), ""
	}
	publicKey, err := checkSecret(seen.secret, hook.Spec.Signing)
	if err != nil {
		return refuse(v1alpha1.ReasonInvalidSecret, "key %s of Secret %s cannot sign: %v", v1alpha1.WebhookSecretKey, hook.SecretName(), err), ""
	}
	if ref := hook.Spec.HeadersSecretRef; ref != nil && seen.headers == nil {
		return refuse(v1alpha1.ReasonSecretNotFound, "there is no Secret %s of type %s for headers", ref.Name, v1alpha1.SecretTypeWebhook), publicKey
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the settings are taken"}, publicKey
}

func activate(hook *v1alpha1.Webhook, accepted verdict, enabled bool) verdict {
	switch {
	case accepted.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, accepted.message}
	case hook.Spec.Active == nil || !*hook.Spec.Active:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonInactive, "the Webhook is not active"}
	case !enabled:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonTypeDisabled, "no WebhookEvent enables " + string(hook.Spec.EventType)}
	}
	return verdict{
		metav1.ConditionFalse, v1alpha1.ReasonNoDelivery,
		"This release of Paddock does not deliver events yet, so the Webhook receives none. Nothing has to be changed: " +
			"the settings are complete, and the Webhook becomes active after an upgrade to a release that delivers events.",
	}
}
