package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events/signing"
)

func secretOf(value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{v1alpha1.WebhookSecretKey: []byte(value)}}
}

func TestStatus(t *testing.T) {
	shared := secretOf(signing.NewShared())
	key, err := signing.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	public, err := signing.Public(key)
	if err != nil {
		t.Fatal(err)
	}
	on, off := true, false
	for name, test := range map[string]struct {
		change func(*v1alpha1.WebhookSpec)
		seen   surroundings
		// conditions as status and reason, Accepted first
		want   []string
		public string
	}{
		"in use":           {nil, surroundings{secret: shared, enabled: true}, []string{"True Accepted", "False NoDelivery"}, ""},
		"type is off":      {nil, surroundings{secret: shared}, []string{"True Accepted", "False TypeDisabled"}, ""},
		"inactive":         {func(s *v1alpha1.WebhookSpec) { s.Active = &off }, surroundings{secret: shared, enabled: true}, []string{"True Accepted", "False Inactive"}, ""},
		"no secret":        {nil, surroundings{enabled: true}, []string{"False SecretNotFound", "False NotAccepted"}, ""},
		"may not read":     {nil, surroundings{forbidden: "bind it", enabled: true}, []string{"False SecretsForbidden", "False NotAccepted"}, ""},
		"a bad secret":     {nil, surroundings{secret: secretOf("whsec_c2hvcnQ="), enabled: true}, []string{"False InvalidSecret", "False NotAccepted"}, ""},
		"an empty secret":  {nil, surroundings{secret: &corev1.Secret{}, enabled: true}, []string{"False InvalidSecret", "False NotAccepted"}, ""},
		"Ed25519":          {func(s *v1alpha1.WebhookSpec) { s.Signing = v1alpha1.SigningEd25519 }, surroundings{secret: secretOf(key), enabled: true}, []string{"True Accepted", "False NoDelivery"}, public},
		"a secret as key":  {func(s *v1alpha1.WebhookSpec) { s.Signing = v1alpha1.SigningEd25519 }, surroundings{secret: shared, enabled: true}, []string{"False InvalidSecret", "False NotAccepted"}, ""},
		"no header secret": {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, enabled: true}, []string{"False SecretNotFound", "False NotAccepted"}, ""},
		"headers":          {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, headers: &corev1.Secret{}, enabled: true}, []string{"True Accepted", "False NoDelivery"}, ""},
		"too much": {func(s *v1alpha1.WebhookSpec) {
			s.Extensions = &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", v1alpha1.MaxExtensions) + `"}`)}
		}, surroundings{secret: shared, enabled: true}, []string{"False ExtensionsTooLarge", "False NotAccepted"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hook := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Name: "hook", UID: "u", Generation: 2}, Spec: v1alpha1.WebhookSpec{EventType: "user.created", Active: &on}}
			if test.change != nil {
				test.change(&hook.Spec)
			}
			status := statusOf(hook, test.seen, time.Now())
			var got []string
			for _, c := range status.Conditions {
				got = append(got, string(c.Status)+" "+c.Reason)
				if test.seen.secret != nil && len(test.seen.secret.Data) > 0 && strings.Contains(c.Message, string(test.seen.secret.Data[v1alpha1.WebhookSecretKey])) {
					t.Errorf("%s tells the secret", c.Type)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || status.PublicKey != test.public || status.SecretName != "webhook-u" || status.ObservedGeneration != 2 {
				t.Errorf("status %+v: %s", status, diff)
			}
			const told = "This release of Paddock does not deliver events yet, so the Webhook receives none."
			active := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionActive)
			if told := strings.HasPrefix(active.Message, told); told != (active.Reason == v1alpha1.ReasonNoDelivery) {
				t.Errorf("%s: %s", active.Reason, active.Message)
			}
			hook.Status = status
			if diff := cmp.Diff(status, statusOf(hook, test.seen, time.Now().Add(time.Hour))); diff != "" {
				t.Errorf("a status that nothing changed: %s", diff)
			}
		})
	}
}

func TestEnables(t *testing.T) {
	on, off := true, false
	event := func(eventType v1alpha1.EventType, enabled *bool) v1alpha1.WebhookEvent {
		return v1alpha1.WebhookEvent{Spec: v1alpha1.WebhookEventSpec{EventType: eventType, Enabled: enabled}}
	}
	for name, test := range map[string]struct {
		events []v1alpha1.WebhookEvent
		want   bool
	}{
		"none":         {nil, false},
		"another type": {[]v1alpha1.WebhookEvent{event("user.updated", &on)}, false},
		"off":          {[]v1alpha1.WebhookEvent{event("user.created", &off), event("user.created", nil)}, false},
		"any":          {[]v1alpha1.WebhookEvent{event("user.created", &off), event("user.created", &on)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enables(test.events, "user.created"); got != test.want {
				t.Errorf("enables = %t", got)
			}
		})
	}
}
