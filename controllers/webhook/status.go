package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// surroundings are the other objects that a Webhook's status depends on.
type surroundings struct {
	// secret, previous, headers and certificate are the Secrets of the Webhook. Each is nil if it does
	// not exist.
	secret, previous, headers, certificate *corev1.Secret
	// forbidden is a message if kube-apiserver refuses that the controller reads one of these Secrets,
	// or creates that of the signing secret. It is empty otherwise.
	forbidden string
	// enabled is true if a WebhookEvent enables the Webhook's type of events.
	enabled bool
	// unproduced is a message if no change of a record produces events of the Webhook's type.
	unproduced string
	// wait is for how long the Secret of a new Webhook may still be missing without being reported. While
	// it is positive, no status is written.
	wait time.Duration
}

// verdict is the status, reason and message of one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// enables reports whether any of the WebhookEvents enables a type of events.
func enables(events []v1alpha1.WebhookEvent, eventType v1alpha1.EventType) bool {
	return slices.ContainsFunc(events, func(event v1alpha1.WebhookEvent) bool {
		return event.Spec.EventType == eventType && event.Spec.Enabled != nil && *event.Spec.Enabled && event.DeletionTimestamp.IsZero()
	})
}

// statusOf returns the desired status of a Webhook.
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
	active := activate(hook, accepted, seen)
	set(v1alpha1.ConditionActive, active)
	set(v1alpha1.ConditionDelivering, deliver(hook, active))
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDisabled) && !hook.IsDisabled() {
		set(v1alpha1.ConditionDisabled, verdict{metav1.ConditionFalse, v1alpha1.ReasonEnabled, "The Webhook was enabled again."})
	}
	return status
}

// accept returns the verdict of the condition Accepted and the public key. Messages contain no
// secrets.
func accept(hook *v1alpha1.Webhook, seen surroundings) (v verdict, publicKey string) {
	refuse := func(reason, format string, args ...any) verdict {
		return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	if extensions := hook.Spec.Extensions; extensions != nil && len(extensions.Raw) > v1alpha1.MaxExtensions {
		return refuse(v1alpha1.ReasonExtensionsTooLarge, "spec.extensions has %d bytes. Shorten it to at most %d bytes.", len(extensions.Raw), v1alpha1.MaxExtensions), ""
	}
	if seen.forbidden != "" {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretsForbidden, seen.forbidden}, ""
	}
	if seen.secret == nil {
		return refuse(v1alpha1.ReasonSecretNotFound, "There is no Secret %s of type %s. Create it, or correct spec.secretRef.", hook.SecretName(), v1alpha1.SecretTypeWebhook), ""
	}
	publicKey, err := checkSecret(seen.secret, hook.Spec.Signing)
	if err != nil {
		return refuse(v1alpha1.ReasonInvalidSecret, "Key %s of Secret %s is not a valid signing secret: %v. Correct its value.", v1alpha1.WebhookSecretKey, hook.SecretName(), err), ""
	}
	if ref := hook.Spec.HeadersSecretRef; ref != nil && seen.headers == nil {
		return refuse(v1alpha1.ReasonSecretNotFound, "There is no Secret %s of type %s. Create it, or correct spec.headersSecretRef.", ref.Name, v1alpha1.SecretTypeWebhook), publicKey
	}
	if name := invalidHeader(seen.headers); name != "" {
		return refuse(v1alpha1.ReasonInvalidSecret, "Key %s of Secret %s, which spec.headersSecretRef names, is not a valid HTTP header field, for example because its value has several lines. Correct or remove it.", name, hook.Spec.HeadersSecretRef.Name), publicKey
	}
	if bundle := hook.Spec.CABundle; bundle != nil && !x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return refuse(v1alpha1.ReasonInvalidCABundle, "spec.caBundle has no PEM certificate. Set it to the certificates of the receiver's authorities, PEM-encoded."), publicKey
	}
	if v, ok := checkCertificate(hook.Spec.ClientCertificateSecretRef, seen.certificate); !ok {
		return v, publicKey
	}
	size := 0
	for name, value := range seen.handedOver() {
		size += len(name) + len(value)
	}
	if size > maxSecrets {
		return refuse(v1alpha1.ReasonInvalidSecret, "The Secrets of the Webhook have %d bytes in total. Shorten them to at most %d bytes.", size, maxSecrets), publicKey
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "The settings are valid."}, publicKey
}

// invalidHeader returns the first key of the Secret of the header fields whose name or value is not
// valid in HTTP, or "" if all are valid.
func invalidHeader(headers *corev1.Secret) string {
	if headers == nil {
		return ""
	}
	fields := v1alpha1.HeaderFields(headers.Data)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(fields[name]) {
			return name
		}
	}
	return ""
}

// checkCertificate reports whether the Secret of the client certificate is valid or not needed. If
// not, it returns the verdict. Errors of crypto/tls do not contain the key.
func checkCertificate(ref *v1alpha1.WebhookSecretReference, secret *corev1.Secret) (v verdict, ok bool) {
	if ref == nil {
		return verdict{}, true
	}
	if secret == nil {
		message := fmt.Sprintf("There is no Secret %s of type %s. Create it, or correct spec.clientCertificateSecretRef.", ref.Name, v1alpha1.SecretTypeWebhook)
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, message}, false
	}
	if _, err := tls.X509KeyPair(secret.Data[v1alpha1.WebhookCertificateKey], secret.Data[v1alpha1.WebhookPrivateKeyKey]); err != nil {
		message := fmt.Sprintf("Keys %s and %s of Secret %s are not a certificate with its private key: %v. Correct their values.",
			v1alpha1.WebhookCertificateKey, v1alpha1.WebhookPrivateKeyKey, ref.Name, err)
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalidSecret, message}, false
	}
	return verdict{}, true
}

func activate(hook *v1alpha1.Webhook, accepted verdict, seen surroundings) verdict {
	switch {
	case accepted.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, accepted.message}
	case hook.Spec.Active == nil || !*hook.Spec.Active:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonInactive, "The Webhook is not active. Set spec.active to true."}
	case hook.IsDisabled():
		disabled := meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled)
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonDisabled, disabled.Message}
	case !seen.enabled:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonTypeDisabled, "No WebhookEvent enables the type " + string(hook.Spec.EventType) + ". Create a WebhookEvent of this type, or set its spec.enabled to true."}
	}
	message := "Events of the type " + string(hook.Spec.EventType) + " are sent to the receiver."
	if seen.unproduced != "" {
		message += " " + seen.unproduced
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonActive, message}
}

// deliver returns the verdict of the condition Delivering. Its reason is the same for all failures, so
// that a change from one kind of failure to another causes no Event.
func deliver(hook *v1alpha1.Webhook, active verdict) verdict {
	status := &hook.Status
	switch {
	case active.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonNotActive, active.message}
	case status.FailingSince != nil && status.LastFailure != nil:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonFailing, fmt.Sprintf("All attempts since %s have failed. The last one (%s): %s. Check the receiver and the settings of the Webhook.",
			status.FailingSince.UTC().Format(time.RFC3339), status.LastFailure.Reason, status.LastFailure.Message)}
	case status.FailingSince != nil:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonFailing, fmt.Sprintf("All attempts since %s have failed. Check the receiver and the settings of the Webhook.",
			status.FailingSince.UTC().Format(time.RFC3339))}
	case status.LastSuccess == nil:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonNoDeliveries, "The receiver has accepted no event yet."}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonDelivered, "The receiver accepts events."}
}
