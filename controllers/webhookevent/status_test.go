package webhookevent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const created = v1alpha1.EventType("user.created")

func event(enabled bool, extensions int) *v1alpha1.WebhookEvent {
	e := &v1alpha1.WebhookEvent{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Spec: v1alpha1.WebhookEventSpec{EventType: created, Enabled: &enabled}}
	if extensions > 0 {
		e.Spec.Extensions = &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", extensions-8) + `"}`)}
	}
	return e
}

func hook(eventType v1alpha1.EventType, active bool, accepted metav1.ConditionStatus) v1alpha1.Webhook {
	h := v1alpha1.Webhook{Spec: v1alpha1.WebhookSpec{EventType: eventType, Active: &active}}
	meta.SetStatusCondition(&h.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: accepted, Reason: "x"})
	return h
}

func TestStatus(t *testing.T) {
	deleting := hook(created, true, metav1.ConditionTrue)
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, test := range map[string]struct {
		event *v1alpha1.WebhookEvent
		hooks []v1alpha1.Webhook
		// conditions as status and reason, Accepted first
		want     []string
		webhooks int32
	}{
		"nothing takes it":    {event(true, 0), nil, []string{"True Accepted", "False NoWebhooks"}, 0},
		"one takes it":        {event(true, 0), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"True Accepted", "False NoDelivery"}, 1},
		"disabled":            {event(false, 0), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"True Accepted", "False Disabled"}, 1},
		"extensions: most":    {event(true, v1alpha1.MaxExtensions), nil, []string{"True Accepted", "False NoWebhooks"}, 0},
		"extensions too many": {event(true, v1alpha1.MaxExtensions+1), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"False ExtensionsTooLarge", "False NotAccepted"}, 1},
		"others do not take it": {event(true, 0), []v1alpha1.Webhook{
			hook("user.updated", true, metav1.ConditionTrue), hook(created, false, metav1.ConditionTrue), hook(created, true, metav1.ConditionFalse), deleting,
		}, []string{"True Accepted", "False NoWebhooks"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(test.event, test.hooks, time.Now())
			var got []string
			for _, c := range status.Conditions {
				got = append(got, string(c.Status)+" "+c.Reason)
				if c.ObservedGeneration != 4 {
					t.Errorf("%s speaks of generation %d", c.Type, c.ObservedGeneration)
				}
			}
			const told = "This release of Paddock does not deliver events yet, so no Webhook receives user.created."
			active := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionActive)
			if told := strings.HasPrefix(active.Message, told); told != (active.Reason == v1alpha1.ReasonNoDelivery) {
				t.Errorf("%s: %s", active.Reason, active.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || status.Webhooks != test.webhooks || status.ObservedGeneration != 4 {
				t.Errorf("status %+v: %s", status, diff)
			}
		})
	}
}

func TestStatusStaysWhereNothingChanges(t *testing.T) {
	e := event(true, 0)
	e.Status = statusOf(e, nil, time.Now())
	if diff := cmp.Diff(e.Status, statusOf(e, nil, time.Now().Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
}
