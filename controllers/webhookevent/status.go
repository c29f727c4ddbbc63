package webhookevent

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// verdict is what one condition says.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// statusOf is the status that a WebhookEvent is to have beside the Webhooks of its namespace.
func statusOf(event *v1alpha1.WebhookEvent, hooks []v1alpha1.Webhook, now time.Time) v1alpha1.WebhookEventStatus {
	taking := int32(0)
	for i := range hooks {
		if takes(&hooks[i], event.Spec.EventType) {
			taking++
		}
	}
	status := *event.Status.DeepCopy()
	status.ObservedGeneration, status.Webhooks = event.Generation, taking
	accepted := accept(event)
	set := func(condition string, v verdict) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition, Status: v.status, Reason: v.reason, Message: v.message,
			ObservedGeneration: event.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	set(v1alpha1.ConditionAccepted, accepted)
	set(v1alpha1.ConditionActive, activate(event, accepted, taking))
	return status
}

// takes reports whether a Webhook is active, accepted and of a type.
func takes(hook *v1alpha1.Webhook, eventType v1alpha1.EventType) bool {
	return hook.Spec.EventType == eventType && hook.Spec.Active != nil && *hook.Spec.Active && hook.DeletionTimestamp.IsZero() &&
		meta.IsStatusConditionTrue(hook.Status.Conditions, v1alpha1.ConditionAccepted)
}

func accept(event *v1alpha1.WebhookEvent) verdict {
	if extensions := event.Spec.Extensions; extensions != nil && len(extensions.Raw) > v1alpha1.MaxExtensions {
		return verdict{
			metav1.ConditionFalse, v1alpha1.ReasonExtensionsTooLarge,
			fmt.Sprintf("extensions has %d bytes; at most %d are taken", len(extensions.Raw), v1alpha1.MaxExtensions),
		}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the settings are taken"}
}

func activate(event *v1alpha1.WebhookEvent, accepted verdict, taking int32) verdict {
	switch {
	case accepted.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, accepted.message}
	case event.Spec.Enabled == nil || !*event.Spec.Enabled:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonDisabled, "this WebhookEvent does not enable " + string(event.Spec.EventType)}
	case taking == 0:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNoWebhooks, "no active Webhook takes " + string(event.Spec.EventType)}
	}
	return verdict{
		metav1.ConditionFalse, v1alpha1.ReasonNoDelivery,
		fmt.Sprintf("This release of Paddock does not deliver events yet, so no Webhook receives %s. Nothing has to be changed: "+
			"the settings are complete, and the WebhookEvent becomes active after an upgrade to a release that delivers events.", event.Spec.EventType),
	}
}
