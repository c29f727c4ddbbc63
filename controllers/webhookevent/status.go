package webhookevent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// verdict is the status, reason and message of one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// statusOf returns the desired status of a WebhookEvent, given the Webhooks in its namespace.
// unproduced is a message if no change of a record produces events of the type.
func statusOf(event *v1alpha1.WebhookEvent, hooks []v1alpha1.Webhook, unproduced string, now time.Time) v1alpha1.WebhookEventStatus {
	taking := slices.DeleteFunc(slices.Clone(hooks), func(hook v1alpha1.Webhook) bool { return !takes(&hook, event.Spec.EventType) })
	status := *event.Status.DeepCopy()
	status.ObservedGeneration, status.Webhooks = event.Generation, int32(len(taking))
	accepted := accept(event)
	set := func(condition string, v verdict) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition, Status: v.status, Reason: v.reason, Message: v.message,
			ObservedGeneration: event.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	set(v1alpha1.ConditionAccepted, accepted)
	active := activate(event, accepted, len(taking), unproduced)
	set(v1alpha1.ConditionActive, active)
	set(v1alpha1.ConditionDelivering, deliver(active, taking, unproduced))
	return status
}

// takes reports whether a Webhook receives events of the type: it is active, accepted and not
// disabled.
func takes(hook *v1alpha1.Webhook, eventType v1alpha1.EventType) bool {
	return hook.Spec.EventType == eventType && hook.Spec.Active != nil && *hook.Spec.Active && hook.DeletionTimestamp.IsZero() && !hook.IsDisabled() &&
		meta.IsStatusConditionTrue(hook.Status.Conditions, v1alpha1.ConditionAccepted)
}

func accept(event *v1alpha1.WebhookEvent) verdict {
	if extensions := event.Spec.Extensions; extensions != nil && len(extensions.Raw) > v1alpha1.MaxExtensions {
		return verdict{
			metav1.ConditionFalse, v1alpha1.ReasonExtensionsTooLarge,
			fmt.Sprintf("spec.extensions has %d bytes. Shorten it to at most %d bytes.", len(extensions.Raw), v1alpha1.MaxExtensions),
		}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "The settings are valid."}
}

func activate(event *v1alpha1.WebhookEvent, accepted verdict, taking int, unproduced string) verdict {
	switch {
	case accepted.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, accepted.message}
	case event.Spec.Enabled == nil || !*event.Spec.Enabled:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonDisabled, "This WebhookEvent does not enable the type " + string(event.Spec.EventType) + ". Set spec.enabled to true."}
	case taking == 0:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNoWebhooks, "No Webhook of the type " + string(event.Spec.EventType) + " is active. Create one, or see the condition Active of those that exist."}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonActive, sentences(fmt.Sprintf("Events of the type %s are sent to %d active Webhooks.", event.Spec.EventType, taking), unproduced)}
}

// maxNamed is the maximum number of Webhooks that a message names. It counts further Webhooks.
const maxNamed = 5

// deliver returns the verdict of the condition Delivering for the Webhooks of the type.
func deliver(active verdict, taking []v1alpha1.Webhook, unproduced string) verdict {
	if active.status != metav1.ConditionTrue {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotActive, active.message}
	}
	var failing []string
	delivered := false
	for i := range taking {
		delivered = delivered || taking[i].Status.LastSuccess != nil
		if taking[i].Status.FailingSince != nil {
			failing = append(failing, taking[i].Name)
		}
	}
	switch {
	case len(failing) > 0:
		slices.Sort(failing)
		named := strings.Join(failing[:min(len(failing), maxNamed)], ", ")
		if len(failing) > maxNamed {
			named += fmt.Sprintf(" and %d more", len(failing)-maxNamed)
		}
		return verdict{
			metav1.ConditionFalse, v1alpha1.ReasonFailing,
			fmt.Sprintf("Deliveries to %d of %d Webhooks fail: %s. The condition Delivering of each has the cause; check their receivers.", len(failing), len(taking), named),
		}
	case !delivered:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonNoDeliveries, sentences("No Webhook has accepted an event yet.", unproduced)}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonDelivered, "The Webhooks accept events."}
}

// sentences joins a message with another one, which may be empty.
func sentences(message, more string) string { return strings.TrimSpace(message + " " + more) }
