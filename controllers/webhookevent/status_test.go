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
	now := metav1.Now()
	sent := func(lastSuccess, failingSince *metav1.Time) v1alpha1.Webhook {
		h := hook(created, true, metav1.ConditionTrue)
		h.Status.LastSuccess, h.Status.FailingSince = lastSuccess, failingSince
		return h
	}
	gone := hook(created, true, metav1.ConditionTrue)
	meta.SetStatusCondition(&gone.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGone})
	deleting := hook(created, true, metav1.ConditionTrue)
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, test := range map[string]struct {
		event *v1alpha1.WebhookEvent
		hooks []v1alpha1.Webhook
		// conditions as status and reason: Accepted, Active, Delivering
		want     []string
		webhooks int32
	}{
		"nothing takes it":       {event(true, 0), nil, []string{"True Accepted", "False NoWebhooks", "False NotActive"}, 0},
		"one takes it":           {event(true, 0), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, 1},
		"disabled":               {event(false, 0), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"True Accepted", "False Disabled", "False NotActive"}, 1},
		"it arrives":             {event(true, 0), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue), sent(&now, nil)}, []string{"True Accepted", "True Active", "True Delivered"}, 2},
		"one fails":              {event(true, 0), []v1alpha1.Webhook{sent(&now, nil), sent(nil, &now)}, []string{"True Accepted", "True Active", "False Failing"}, 2},
		"disabled by the server": {event(true, 0), []v1alpha1.Webhook{gone}, []string{"True Accepted", "False NoWebhooks", "False NotActive"}, 0},
		"extensions: most":       {event(true, v1alpha1.MaxExtensions), nil, []string{"True Accepted", "False NoWebhooks", "False NotActive"}, 0},
		"extensions too many":    {event(true, v1alpha1.MaxExtensions+1), []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, []string{"False ExtensionsTooLarge", "False NotAccepted", "False NotActive"}, 1},
		"others do not take it": {event(true, 0), []v1alpha1.Webhook{
			hook("user.updated", true, metav1.ConditionTrue), hook(created, false, metav1.ConditionTrue), hook(created, true, metav1.ConditionFalse), deleting,
		}, []string{"True Accepted", "False NoWebhooks", "False NotActive"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(test.event, test.hooks, "", time.Now())
			var got []string
			for _, c := range status.Conditions {
				got = append(got, string(c.Status)+" "+c.Reason)
				if c.ObservedGeneration != 4 {
					t.Errorf("%s speaks of generation %d", c.Type, c.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || status.Webhooks != test.webhooks || status.ObservedGeneration != 4 {
				t.Errorf("status %+v: %s", status, diff)
			}
		})
	}
}

func TestStatusStaysWhereNothingChanges(t *testing.T) {
	e := event(true, 0)
	e.Status = statusOf(e, nil, "", time.Now())
	if diff := cmp.Diff(e.Status, statusOf(e, nil, "", time.Now().Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
}

// TestManyFailing checks that the condition Delivering names five Webhooks that fail, and counts the rest.
func TestManyFailing(t *testing.T) {
	var hooks []v1alpha1.Webhook
	for _, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
		failing := hook(created, true, metav1.ConditionTrue)
		failing.Name, failing.Status.FailingSince = name, &metav1.Time{Time: time.Now()}
		hooks = append(hooks, failing)
	}
	status := statusOf(event(true, 0), hooks, "", time.Now())
	const want = "Deliveries to 7 of 7 Webhooks fail: a, b, c, d, e and 2 more."
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDelivering); got == nil || !strings.HasPrefix(got.Message, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// TestUnproduced checks that the conditions of a WebhookEvent say that no change produces its events,
// once they would be sent.
func TestUnproduced(t *testing.T) {
	const unproduced = "No change produces them: add a source."
	e := event(true, 0)
	status := statusOf(e, []v1alpha1.Webhook{hook(created, true, metav1.ConditionTrue)}, unproduced, time.Now())
	want := map[string]string{
		v1alpha1.ConditionActive:     "Events of the type user.created are sent to 1 active Webhooks. " + unproduced,
		v1alpha1.ConditionDelivering: "No Webhook has accepted an event yet. " + unproduced,
	}
	for condition, message := range want {
		if got := meta.FindStatusCondition(status.Conditions, condition); got == nil || got.Message != message {
			t.Errorf("got %+v, want %s", got, message)
		}
	}
}
