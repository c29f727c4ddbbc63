// Package announce records Kubernetes Events about the conditions of Sites, Webhooks and
// WebhookEvents, so that `kubectl describe` shows when they changed and why. It announces the
// changes that any program makes, because several programs set conditions.
package announce

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Handler returns a handler of watched objects that records an Event for each changed condition. It
// triggers no reconciles. Changes while no controller runs are not announced.
func Handler(recorder events.EventRecorder) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, c := range changes(conditionsOf(e.ObjectOld), conditionsOf(e.ObjectNew)) {
				// The action distinguishes Events with the same reason, which are merged otherwise.
				recorder.Eventf(e.ObjectNew, nil, eventType(c), c.Reason, c.Type, "%s", note(c))
			}
		},
	}
}

func conditionsOf(object client.Object) []metav1.Condition {
	switch object := object.(type) {
	case *v1alpha1.Site:
		return object.Status.Conditions
	case *v1alpha1.Webhook:
		return object.Status.Conditions
	case *v1alpha1.WebhookEvent:
		return object.Status.Conditions
	default:
		return nil
	}
}

// changes returns the conditions whose status or reason differs from before. A condition that
// appears with the status False and no message, such as Stalled of a new Site, is no change. The
// delivery process itself records that it has disabled a Webhook.
func changes(before, after []metav1.Condition) []metav1.Condition {
	var changed []metav1.Condition
	for _, is := range after {
		was := meta.FindStatusCondition(before, is.Type)
		switch {
		case was == nil && is.Status == metav1.ConditionFalse && is.Message == "":
		case was != nil && was.Status == is.Status && was.Reason == is.Reason:
		case is.Type == v1alpha1.ConditionDisabled && is.Status == metav1.ConditionTrue:
		default:
			changed = append(changed, is)
		}
	}
	return changed
}

var (
	// faults are the conditions whose status True is a fault. Of other conditions, except for neutral,
	// the status False is a fault.
	faults = []string{v1alpha1.ConditionStalled, v1alpha1.ConditionDisabled, v1alpha1.ConditionStorageNearLimit}
	// neutral are the conditions of which no status is a fault.
	neutral = []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionActive}
	// expected are the reasons with which the status False is not a fault.
	expected = []string{v1alpha1.ReasonProvisioning, v1alpha1.ReasonDeleting, v1alpha1.ReasonNoDatabase, v1alpha1.ReasonRoutePending, v1alpha1.ReasonNotActive}
)

func eventType(c metav1.Condition) string {
	wrong := c.Status == metav1.ConditionFalse
	if slices.Contains(faults, c.Type) {
		wrong = c.Status == metav1.ConditionTrue
	}
	if !wrong || slices.Contains(neutral, c.Type) || slices.Contains(expected, c.Reason) {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// maxNote is the maximum length in bytes of an Event's note, without the "…" that replaces the rest of a
// longer note. kube-apiserver refuses notes of 1024 bytes and more.
const maxNote = 1000

func note(c metav1.Condition) string {
	text := c.Type + " is " + string(c.Status) + "."
	if c.Message != "" {
		text = c.Type + " is " + string(c.Status) + ": " + c.Message
	}
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote], "") + "…"
	}
	return text
}
