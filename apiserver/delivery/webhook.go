package delivery

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

// Webhook has the settings of a webhook for an attempt.
type Webhook struct {
	// ID is the id of the webhook in the AHDS API.
	ID string
	// Generation increases with every change of the webhook's settings.
	Generation int64
	URL        string
	// Disabled is why nothing is sent to the webhook. It is empty while the webhook is enabled.
	Disabled string
	// Cleared reports whether the webhook gets the data of restricted events.
	Cleared bool
	// Fields are the members of the event's data that are sent. If empty, all members are sent.
	Fields []string
	// Keys sign each delivery, the current one first. There is at least one unless Disabled is set. Then
	// Header and ClientCertificate are not set either.
	Keys []signing.Key
	// Header has additional header fields of requests. The case of their names is ignored.
	Header map[string]string
	// CABundle has the PEM certificates of the CAs that are trusted to issue the receiver's
	// certificate. If nil, the CAs of the system are trusted.
	CABundle []byte
	// ClientCertificate is presented to the receiver, unless it is nil.
	ClientCertificate *tls.Certificate
	// Delays are the pauses after each failed attempt of a delivery. If empty, a delivery
	// is not retried.
	Delays []time.Duration
	// Timeout is the time limit of an attempt.
	Timeout time.Duration
	// Changed is when the settings last changed or the webhook was enabled.
	Changed time.Time
	// FailingSince is the time of the first failure after the last success, as of the last report,
	// which may be minutes old. It is zero without a failure.
	FailingSince time.Time
}

// Webhooks reads and disables the webhooks of one Site.
type Webhooks interface {
	// Webhook returns a webhook's settings, to send an event that was accepted at a time. Errors:
	// store.ErrNotFound, *SecretError. After any other error the settings may be available later.
	Webhook(ctx context.Context, id string, accepted time.Time) (Webhook, error)
	// Disable disables a webhook. It returns an error if the settings have changed since Webhook
	// returned them. message is a readable description of the cause.
	Disable(ctx context.Context, webhook Webhook, cause Cause, message string) error
}

// SecretError is returned if a Secret of a webhook cannot be used.
type SecretError struct {
	// Webhook has the settings that could be read, at least Delays.
	Webhook Webhook
	// Problem describes the problem, without the content of the Secret.
	Problem string
}

func (e *SecretError) Error() string { return e.Problem }

// Cause is why a webhook is disabled.
type Cause string

// The causes.
const (
	// CauseGone means that the receiver responded with status 410.
	CauseGone Cause = "gone"
	// CauseFailing means that all attempts have failed for at least DisableAfter.
	CauseFailing Cause = "failing"
)

// DisableAfter is how long all attempts must fail before a webhook is disabled. It is longer than
// the default schedule of about 76 hours, so that a single event does not disable a webhook with
// that schedule.
const DisableAfter = 120 * time.Hour
