package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
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

// HeaderFields returns the header fields in the data of a Secret that headersSecretRef names, or of the
// delivery process's Secret. It returns nil if there are none. It removes the line breaks with which the
// content of files often ends.
func HeaderFields(data map[string][]byte) map[string]string {
	var fields map[string]string
	for name, value := range data {
		switch name {
		case WebhookSecretKey, WebhookPreviousSecretKey, WebhookCertificateKey, WebhookPrivateKeyKey:
			continue
		}
		if fields == nil {
			fields = map[string]string{}
		}
		fields[name] = strings.TrimRight(string(value), "\r\n")
	}
	return fields
}

// Revision returns uid/generation, which identifies the settings of a Webhook.
func (w *Webhook) Revision() string { return fmt.Sprintf("%s/%d", w.UID, w.Generation) }
