package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// The controller copies the contents of a Webhook's Secrets into one Secret for the delivery
// process. That Secret has the type SecretTypeWebhook and is in a namespace that holds nothing else.
// Its keys are WebhookSecretKey, WebhookPreviousSecretKey, WebhookCertificateKey,
// WebhookPrivateKeyKey and the names of HTTP header fields.
const (
	// WebhookPreviousSecretKey is the key in the data of the delivery process's Secret that has the
	// signing secret that the last rotation replaced.
	WebhookPreviousSecretKey = "secret.previous"
	// WebhookAnnotation is the annotation of the delivery process's Secret that names the Webhook as
	// namespace/name.
	WebhookAnnotation = "paddock.health/webhook"
	// WebhookRevisionAnnotation is the annotation of the delivery process's Secret with the Revision
	// of the Webhook from which the Secret was made. The delivery process uses the Secret only with
	// that Revision, so header fields for one receiver are never sent to another.
	WebhookRevisionAnnotation = "paddock.health/webhook-revision"
)

// DeliverySecretName returns the name of the delivery process's Secret for a Webhook.
func DeliverySecretName(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return "webhook-" + hex.EncodeToString(sum[:16])
}

// Revision returns uid/generation, which identifies the settings of a Webhook.
func (w *Webhook) Revision() string { return fmt.Sprintf("%s/%d", w.UID, w.Generation) }
