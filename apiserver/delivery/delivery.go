// Package delivery sends events to webhooks. It determines whether and when an attempt is retried,
// and when a webhook is disabled. Storage engines queue deliveries and store their log.
package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Status is the status of a delivery.
type Status string

// The statuses of a delivery.
const (
	// Pending means that the delivery has not ended: its next attempt is due or scheduled.
	Pending Status = "pending"
	// Delivered means that the receiver responded with 2xx.
	Delivered Status = "delivered"
	// Failed means that the final attempt of the schedule failed.
	Failed Status = "failed"
	// Undelivered means that the webhook was disabled or deleted when an attempt was due, or was
	// disabled because the attempt failed.
	Undelivered Status = "undelivered"
)

// Reason is a stable code for the result of an attempt.
type Reason string

// The reasons of attempts.
const (
	// ReasonDelivered means that the receiver responded with 2xx.
	ReasonDelivered Reason = "delivered"
	// ReasonStatus means that the receiver responded with a status that is not 2xx and that no other
	// reason covers.
	ReasonStatus Reason = "status"
	// ReasonRedirect means that the receiver responded with 3xx. Redirects are not followed.
	ReasonRedirect Reason = "redirect"
	// ReasonGone means that the receiver responded with 410. The webhook is disabled with CauseGone.
	ReasonGone Reason = "gone"
	// ReasonThrottled means that the receiver responded with 429 or 503.
	ReasonThrottled Reason = "throttled"
	// ReasonTimeout means that there was no complete response within the webhook's timeoutSeconds, or
	// that the connection timed out before.
	ReasonTimeout Reason = "timeout"
	// ReasonConnection means that the connection to the receiver failed or broke.
	ReasonConnection Reason = "connection"
	// ReasonCertificate means that the TLS handshake failed or the receiver's certificate is not
	// trusted. It also means that the receiver requested a client certificate and then closed the
	// connection, or that caBundle contains no certificate.
	ReasonCertificate Reason = "certificate"
	// ReasonResolution means that the host name of the webhook's URL could not be resolved.
	ReasonResolution Reason = "resolution"
	// ReasonForbiddenAddress means that Egress forbids connections to the host or its address.
	ReasonForbiddenAddress Reason = "forbidden_address"
	// ReasonSecret means that the Secret of the signing key, of the additional header fields or of the
	// client certificate is invalid. Nothing was sent.
	ReasonSecret Reason = "secret"
	// ReasonDisabled means that the webhook is disabled or does not exist. Nothing was sent.
	ReasonDisabled Reason = "disabled"
)

// Attempt is one request to a receiver.
type Attempt struct {
	At       time.Time
	Duration time.Duration
	// StatusCode is the status code of the response. It is 0 if there was no response.
	StatusCode int
	Reason     Reason
	// Message is a readable description of the reason, without secrets.
	Message string
	// Response is the start of the response's body, at most MaxResponse bytes.
	Response []byte
}

// MaxResponse is the maximum number of bytes of a response's body that an Attempt keeps. The rest is
// discarded.
const MaxResponse = 4 << 10

// Delivery is the delivery of one event to one webhook.
type Delivery struct {
	// ID is the id that DeliveryID returns for the event and the webhook.
	ID string
	// Webhook is the id of the webhook in the AHDS API.
	Webhook string
	// Event is the delivered event. Lists omit its Envelope.
	Event  store.AcceptedEvent
	Status Status
	// Attempts are the attempts so far, the oldest first. Engines keep at least the last 20.
	Attempts []Attempt
	// NextAttempt is when the next attempt of a Pending delivery is due.
	NextAttempt time.Time
	// Finished is when the delivery succeeded or was given up. It is zero while Pending.
	Finished time.Time
}

// DeliveryID returns the id of the delivery of an event to a webhook. It depends only on the ids of
// both, so that an engine that creates the delivery again after an error does not create a second
// one.
func DeliveryID(eventID, webhookID string) string { //nolint:revive // delivery.ID would not say whose: events have ids too
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/delivery/"+webhookID+"/"+eventID)).String()
}

// Query selects deliveries of a webhook.
type Query struct {
	Webhook string
	// Statuses are the statuses of the deliveries to return. If empty, deliveries of all statuses are
	// returned.
	Statuses []Status
	// From and To bound the time at which the event was accepted: From <= accepted < To. A zero value
	// sets no bound.
	From, To time.Time
	// Offset is the number of matches to skip, beginning with the newest. Count is the maximum number
	// of matches to return. Replay ignores both.
	Offset, Count int
}

// Replayed has the numbers of deliveries that a replay has handled.
type Replayed struct {
	// Count is the number of deliveries that the replay has made Pending.
	Count int64
	// Skipped is the number of deliveries that cannot be repeated, because the log has removed the Envelope
	// of their event.
	Skipped int64
}

// ErrContentGone means that a delivery cannot be repeated, because the log has removed the Envelope of its
// event.
var ErrContentGone = errors.New("the content of the delivery is no longer stored")

// Health is the state of the deliveries to a webhook.
type Health struct {
	Pending int64
	// OldestPending is when the oldest pending event was accepted. It is zero if none is pending.
	OldestPending time.Time
	LastSuccess   time.Time
	// FailingSince is the time of the first failure after LastSuccess. It is zero if there was no
	// failure since then.
	FailingSince time.Time
	// LastFailure is the last failed attempt after LastSuccess. Only AddLastFailures sets it.
	LastFailure Attempt
}

// Recent has the numbers of a Site's recent deliveries by status, for all webhooks together.
type Recent struct {
	// From is the time of acceptance from which the numbers are complete.
	From time.Time
	// Minutes are in ascending order of time. Minutes without deliveries are omitted.
	Minutes []Minute
}

// Minute has the numbers of deliveries whose events were accepted within one minute.
type Minute struct {
	At time.Time
	// Failed includes deliveries that are Undelivered.
	Pending, Delivered, Failed int64
}

// Log is the log of a Site's deliveries. The ids of webhooks and deliveries are those of the AHDS
// API.
type Log interface {
	// Deliveries returns the matches of query that its Offset and Count select, the newest first. total
	// is the number of all matches. Postgres counts at most 10,000 matches, and a page that starts after
	// as many is empty.
	Deliveries(ctx context.Context, query Query) (found []Delivery, total int64, err error)
	// Delivery returns a delivery with the Envelope of its event, unless the log has removed that
	// Envelope. Errors: store.ErrNotFound.
	Delivery(ctx context.Context, webhook, id string) (Delivery, error)
	// Redeliver makes a delivery of any status Pending, with an attempt due now. The schedule of the
	// delivery restarts. At an ordered webhook, the attempt waits for earlier Pending deliveries of the
	// same subject. Errors: store.ErrNotFound, ErrContentGone, store.ErrMoving.
	Redeliver(ctx context.Context, webhook, id string) (Delivery, error)
	// Replay redelivers the matches of query that are not Pending. It skips matches whose Envelope the log
	// has removed. It returns the numbers of both, also with an error. Errors: store.ErrMoving.
	Replay(ctx context.Context, query Query) (Replayed, error)
	// Recent counts the deliveries of events that were accepted at or after from, which is the start of
	// a minute. Recent.From is later than from if the engine keeps or counts only newer deliveries.
	Recent(ctx context.Context, from time.Time) (Recent, error)
	// Health returns the health of the Site's webhooks by id.
	Health(ctx context.Context) (map[string]Health, error)
}

// Attempter makes attempts. Engines call it for due deliveries and store the Outcome.
type Attempter interface {
	// Attempt sends an event to a webhook of the Site. attempts is the number of earlier attempts
	// since the start of the schedule. Attempt returns after the response or the timeout. It stores
	// nothing, but may disable the webhook (Outcome.Disable). It returns an error if the webhook's
	// settings or the Envelope cannot be read, or if ctx ended. The attempt then does not count,
	// and the delivery stays due. If ctx ended, the receiver may have the event already.
	Attempt(ctx context.Context, webhook string, event store.AcceptedEvent, attempts int) (Outcome, error)
}

// Outcome is an attempt and its consequences.
type Outcome struct {
	// Attempt is the attempt that was made. If its Reason is ReasonDisabled, nothing was sent, and
	// engines do not add it to Delivery.Attempts.
	Attempt Attempt
	// Status is the new status of the delivery.
	Status Status
	// Next is when the next attempt of a Pending delivery is due.
	Next time.Time
	// Disable reports whether the Attempter has disabled the webhook. The other deliveries of the
	// webhook become Undelivered when they are due.
	Disable bool
}

// State is the state of a webhook's breaker. Engines store it durably.
type State struct {
	// Failures is the number of failed attempts since the last success, without attempts that began
	// before the breaker opened and failed after it.
	Failures int
	// FailingSince is the time of the first failure since the last success, zero without one.
	FailingSince time.Time
	LastSuccess  time.Time
	// OpenUntil is the time until which the breaker is open, so that no attempt is made. Afterwards
	// attempts are made one at a time until an attempt succeeds. It is zero if the breaker has not
	// opened since the last success.
	OpenUntil time.Time
}
