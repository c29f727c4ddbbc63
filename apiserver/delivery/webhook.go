package delivery

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

// Webhook has the settings of a webhook for an attempt.
type Webhook struct {
	// ID is the id in the AHDS API.
	ID string
	// Generation increases with every change of the webhook's settings.
	Generation int64
	URL        string
	// Disabled is why nothing is sent to the webhook. It is empty while the webhook is enabled.
	Disabled string
	// Cleared reports whether the webhook gets the data of restricted events.
	Cleared bool
	// Fields are the members of the event's data that are sent. If it is empty, all are sent.
	Fields []string
	// Keys sign each delivery, the current one first. There is at least one.
	Keys []signing.Key
	// Header has additional header fields. Case of names is ignored.
	Header map[string]string
	// CABundle has the PEM certificates of trusted authorities. If it is nil, the system's are
	// trusted.
	CABundle []byte
	// ClientCertificate is presented to the receiver, unless it is nil.
	ClientCertificate *tls.Certificate
	// Delays are the pauses of the schedule after each failed attempt.
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
	// Webhook returns a webhook's settings. Errors: store.ErrNotFound, *SecretError. After any other
	// error the settings may be available later.
	Webhook(ctx context.Context, id string) (Webhook, error)
	// Disable disables a webhook, unless its settings have changed since Webhook returned them.
	// message is a readable description.
	Disable(ctx context.Context, webhook Webhook, cause Cause, message string) error
}

// SecretError is returned if a Secret of a webhook cannot be used.
type SecretError struct {
	// Webhook has the settings that could be read, at least Delays.
	Webhook Webhook
	// Problem describes the problem. It names the Secret, but has none of its content.
	Problem string
}

func (e *SecretError) Error() string { return e.Problem }

// Cause is why a webhook is disabled.
type Cause string

// The causes.
const (
	CauseGone    Cause = "gone"    // the receiver responded with status 410
	CauseFailing Cause = "failing" // all attempts during DisableAfter failed
)

// DisableAfter is how long all attempts must fail before a webhook is disabled. It is longer than
// the default schedule of about 76 hours, so that a single event does not disable a webhook with
// that schedule.
const DisableAfter = 120 * time.Hour
