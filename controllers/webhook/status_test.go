package webhook

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
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

func headerOf(value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{"Authorization": []byte(value), v1alpha1.WebhookSecretKey: []byte("no header\n\n.")}}
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
	presents := func(s *v1alpha1.WebhookSpec) {
		s.ClientCertificateSecretRef = &v1alpha1.WebhookSecretReference{Name: "c"}
	}
	pair := newPair(t)
	half := &corev1.Secret{Data: map[string][]byte{v1alpha1.WebhookCertificateKey: pair.Data[v1alpha1.WebhookCertificateKey]}}
	for name, test := range map[string]struct {
		change func(*v1alpha1.WebhookSpec)
		seen   surroundings
		// conditions as status and reason, Accepted first
		want   []string
		public string
	}{
		"in use":           {nil, surroundings{secret: shared, enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, ""},
		"type is off":      {nil, surroundings{secret: shared}, []string{"True Accepted", "False TypeDisabled", "False NotActive"}, ""},
		"inactive":         {func(s *v1alpha1.WebhookSpec) { s.Active = &off }, surroundings{secret: shared, enabled: true}, []string{"True Accepted", "False Inactive", "False NotActive"}, ""},
		"no secret":        {nil, surroundings{enabled: true}, []string{"False SecretNotFound", "False NotAccepted", "False NotActive"}, ""},
		"may not read":     {nil, surroundings{forbidden: "bind it", enabled: true}, []string{"False SecretsForbidden", "False NotAccepted", "False NotActive"}, ""},
		"a bad secret":     {nil, surroundings{secret: secretOf("whsec_c2hvcnQ="), enabled: true}, []string{"False InvalidSecret", "False NotAccepted", "False NotActive"}, ""},
		"an empty secret":  {nil, surroundings{secret: &corev1.Secret{}, enabled: true}, []string{"False InvalidSecret", "False NotAccepted", "False NotActive"}, ""},
		"Ed25519":          {func(s *v1alpha1.WebhookSpec) { s.Signing = v1alpha1.SigningEd25519 }, surroundings{secret: secretOf(key), enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, public},
		"a secret as key":  {func(s *v1alpha1.WebhookSpec) { s.Signing = v1alpha1.SigningEd25519 }, surroundings{secret: shared, enabled: true}, []string{"False InvalidSecret", "False NotAccepted", "False NotActive"}, ""},
		"no header secret": {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, enabled: true}, []string{"False SecretNotFound", "False NotAccepted", "False NotActive"}, ""},
		"headers":          {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, headers: &corev1.Secret{}, enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, ""},
		"a header file":    {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, headers: headerOf("Bearer x\r\n"), enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, ""},
		"two header lines": {func(s *v1alpha1.WebhookSpec) { s.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "h"} }, surroundings{secret: shared, headers: headerOf("Bearer x\nX-Tenant: y"), enabled: true}, []string{"False InvalidSecret", "False NotAccepted", "False NotActive"}, ""},
		"authorities":      {func(s *v1alpha1.WebhookSpec) { s.CABundle = pair.Data[v1alpha1.WebhookCertificateKey] }, surroundings{secret: shared, enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, ""},
		"no authorities":   {func(s *v1alpha1.WebhookSpec) { s.CABundle = []byte("x") }, surroundings{secret: shared, enabled: true}, []string{"False InvalidCABundle", "False NotAccepted", "False NotActive"}, ""},
		"a certificate":    {presents, surroundings{secret: shared, certificate: pair, enabled: true}, []string{"True Accepted", "True Active", "Unknown NoDeliveries"}, ""},
		"no certificate":   {presents, surroundings{secret: shared, enabled: true}, []string{"False SecretNotFound", "False NotAccepted", "False NotActive"}, ""},
		"half a pair":      {presents, surroundings{secret: shared, certificate: half, enabled: true}, []string{"False InvalidSecret", "False NotAccepted", "False NotActive"}, ""},
		"too much": {func(s *v1alpha1.WebhookSpec) {
			s.Extensions = &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", v1alpha1.MaxExtensions) + `"}`)}
		}, surroundings{secret: shared, enabled: true}, []string{"False ExtensionsTooLarge", "False NotAccepted", "False NotActive"}, ""},
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
			hook.Status = status
			if diff := cmp.Diff(status, statusOf(hook, test.seen, time.Now().Add(time.Hour))); diff != "" {
				t.Errorf("a status that nothing changed: %s", diff)
			}
		})
	}
}

// TestDisabled follows a Webhook that the server disabled until somebody enables it.
func TestDisabled(t *testing.T) {
	on, at := true, time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	seen := surroundings{secret: secretOf(signing.NewShared()), enabled: true}
	for name, test := range map[string]struct {
		generation int64
		enabledAt  string
		// Disabled, then Active
		want []string
	}{
		"still":                     {2, "", []string{"True Gone", "False Disabled"}},
		"enabled before":            {2, "2031-03-01T08:59:59Z", []string{"True Gone", "False Disabled"}},
		"enabled at no time":        {2, "now", []string{"True Gone", "False Disabled"}},
		"enabled since":             {2, "2031-03-01T09:00:00.1Z", []string{"False Enabled", "True Active"}},
		"with another spec":         {3, "", []string{"False Enabled", "True Active"}},
		"enabled and another, both": {3, "2031-03-01T10:00:00+00:00", []string{"False Enabled", "True Active"}},
	} {
		t.Run(name, func(t *testing.T) {
			hook := &v1alpha1.Webhook{
				ObjectMeta: metav1.ObjectMeta{Name: "hook", UID: "u", Generation: test.generation, Annotations: map[string]string{v1alpha1.EnabledAtAnnotation: test.enabledAt}},
				Spec:       v1alpha1.WebhookSpec{EventType: "user.created", Active: &on},
				Status: v1alpha1.WebhookStatus{Conditions: []metav1.Condition{{
					Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGone, Message: "410", ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(at),
				}}},
			}
			status := statusOf(hook, seen, at.Add(time.Minute))
			var got []string
			for _, kind := range []string{v1alpha1.ConditionDisabled, v1alpha1.ConditionActive} {
				c := meta.FindStatusCondition(status.Conditions, kind)
				got = append(got, string(c.Status)+" "+c.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// newPair is a Secret with a certificate and its key.
func newPair(t *testing.T) *corev1.Secret {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: map[string][]byte{
		v1alpha1.WebhookCertificateKey: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		v1alpha1.WebhookPrivateKeyKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}
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

// TestDelivering checks the condition Delivering by what the delivery process reported.
func TestDelivering(t *testing.T) {
	on, at := true, metav1.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	seen := surroundings{secret: secretOf(signing.NewShared()), enabled: true}
	unproduced := seen
	unproduced.unproduced = "No change produces them: add a source."
	refused := &v1alpha1.WebhookFailure{Reason: "certificate", Message: "no TLS connection could be made: first record does not look like a TLS handshake"}
	for name, test := range map[string]struct {
		status v1alpha1.WebhookStatus
		seen   surroundings
		// status, reason and message of Delivering, and the message of Active
		want, active string
	}{
		"nothing yet": {v1alpha1.WebhookStatus{}, seen, "Unknown NoDeliveries: The receiver has accepted no event yet.", "Events of the type user.created are sent to the receiver."},
		"no source":   {v1alpha1.WebhookStatus{}, unproduced, "Unknown NoDeliveries: The receiver has accepted no event yet.", "Events of the type user.created are sent to the receiver. No change produces them: add a source."},
		"delivered":   {v1alpha1.WebhookStatus{LastSuccess: &at}, seen, "True Delivered: The receiver accepts events.", "Events of the type user.created are sent to the receiver."},
		"failing": {
			v1alpha1.WebhookStatus{LastSuccess: &at, FailingSince: &at, LastFailure: refused},
			seen,
			"False Failing: All attempts since 2031-03-01T09:00:00Z have failed. The last one (certificate): no TLS connection could be made: first record does not look like a TLS handshake. Check the receiver and the settings of the Webhook.",
			"Events of the type user.created are sent to the receiver.",
		},
		"failing, the log is gone": {
			v1alpha1.WebhookStatus{FailingSince: &at},
			seen,
			"False Failing: All attempts since 2031-03-01T09:00:00Z have failed. Check the receiver and the settings of the Webhook.",
			"Events of the type user.created are sent to the receiver.",
		},
		"not active": {v1alpha1.WebhookStatus{FailingSince: &at, LastFailure: refused}, surroundings{secret: seen.secret}, "False NotActive: No WebhookEvent enables the type user.created. Create a WebhookEvent of this type, or set its spec.enabled to true.", "No WebhookEvent enables the type user.created. Create a WebhookEvent of this type, or set its spec.enabled to true."},
	} {
		t.Run(name, func(t *testing.T) {
			hook := &v1alpha1.Webhook{
				ObjectMeta: metav1.ObjectMeta{Name: "hook", UID: "u", Generation: 1},
				Spec:       v1alpha1.WebhookSpec{EventType: "user.created", Active: &on}, Status: test.status,
			}
			status := statusOf(hook, test.seen, at.Time)
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDelivering)
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionActive).Message; got != test.active {
				t.Errorf("Active: got %s, want %s", got, test.active)
			}
		})
	}
}
