// Package delivery sends events to webhooks. It determines whether and when an attempt is retried,
// and when a webhook is disabled. Storage engines queue deliveries and store their log.
package delivery

import (
	"context"
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
	// Undelivered means that the webhook was disabled or deleted when an attempt was due.
	Undelivered Status = "undelivered"
)

// Reason is a stable code for the result of an attempt.
type Reason string

// The reasons of attempts.
const (
	ReasonDelivered        Reason = "delivered"         // the receiver responded with 2xx
	ReasonStatus           Reason = "status"            // the receiver responded with any other status that is not 2xx
	ReasonRedirect         Reason = "redirect"          // the receiver responded with 3xx; redirects are not followed
	ReasonGone             Reason = "gone"              // the receiver responded with 410; the webhook is disabled
	ReasonThrottled        Reason = "throttled"         // the receiver responded with 429 or 503
	ReasonTimeout          Reason = "timeout"           // there was no complete response within timeoutSeconds
	ReasonConnection       Reason = "connection"        // there was no connection, or the connection broke
	ReasonCertificate      Reason = "certificate"       // the TLS handshake failed, or the certificate is invalid
	ReasonResolution       Reason = "resolution"        // the host has no address
	ReasonForbiddenAddress Reason = "forbidden_address" // the operator does not allow connections to the address
	ReasonSecret           Reason = "secret"            // the Secret of the key, of headers or of the client certificate is invalid
	ReasonDisabled         Reason = "disabled"          // the webhook is disabled; nothing was sent
)

// Attempt is one request to a receiver.
type Attempt struct {
	At       time.Time
	Duration time.Duration
	// StatusCode is 0 without a response.
	StatusCode int
	Reason     Reason
	// Message is a readable description of the reason, without secrets.
	Message string
	// Response is the start of the response's body, at most MaxResponse bytes.
	Response []byte
}

// MaxResponse is how many bytes of a response's body are kept. The rest is discarded.
const MaxResponse = 4 << 10

// Delivery is the delivery of one event to one webhook.
type Delivery struct {
	// ID is DeliveryID of the event and the webhook.
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

// DeliveryID returns the id of the delivery of an event to a webhook. It only depends on both, so
// that repeating a step does not create a second delivery.
func DeliveryID(eventID, webhookID string) string { //nolint:revive // delivery.ID would not say whose: events have ids too
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/delivery/"+webhookID+"/"+eventID)).String()
}

// Query selects deliveries of a webhook.
type Query struct {
	Webhook string
	// Statuses are the statuses to return. If it is empty, all are returned.
	Statuses []Status
	// From and To restrict the time of acceptance: From <= accepted < To. Zero does not restrict it.
	From, To time.Time
	// Offset is how many matches to skip, newest first, and Count how many to return at most.
	Offset, Count int
}

// Health is the state of the deliveries to a webhook.
type Health struct {
	Pending int64
	// OldestPending is when the oldest pending event was accepted. It is zero if none is pending.
	OldestPending time.Time
	LastSuccess   time.Time
	// FailingSince is the time of the first failure after LastSuccess. It is zero after a success.
	FailingSince time.Time
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
	// Deliveries returns the selected part of the deliveries that match, and the number of all that
	// match.
	Deliveries(ctx context.Context, query Query) (found []Delivery, total int64, err error)
	// Delivery returns a delivery with the Envelope of its event. Errors: store.ErrNotFound.
	Delivery(ctx context.Context, webhook, id string) (Delivery, error)
	// Redeliver makes a delivery of any status Pending, with an attempt due now. Its schedule
	// restarts. Errors: store.ErrNotFound.
	Redeliver(ctx context.Context, webhook, id string) (Delivery, error)
	// Replay redelivers the deliveries that match. It returns their number, without those that were
	// Pending already.
	Replay(ctx context.Context, query Query) (int64, error)
	// Recent counts the deliveries of events that were accepted at or after from, which is the start of
	// a minute. Recent.From is later if an engine keeps or counts only the newest of them.
	Recent(ctx context.Context, from time.Time) (Recent, error)
	// Health returns the health of the Site's webhooks by id.
	Health(ctx context.Context) (map[string]Health, error)
}

// Attempter makes attempts. Engines call it for due deliveries and store the Outcome.
type Attempter interface {
	// Attempt sends an event to a webhook of the Site. attempts is the number of attempts since the
	// start of the schedule. Attempt returns after the response or the timeout, and stores nothing. If
	// it returns an error, there was no attempt and the delivery stays due: ctx ended, or the
	// webhook's settings cannot be read.
	Attempt(ctx context.Context, webhook string, event store.AcceptedEvent, attempts int) (Outcome, error)
}

// Outcome is an attempt and its consequences.
type Outcome struct {
	// Attempt is the attempt. With ReasonDisabled nothing was sent, and it does not count.
	Attempt Attempt
	// Status is the new status of the delivery.
	Status Status
	// Next is when the next attempt of a Pending delivery is due.
	Next time.Time
	// Disable reports whether the Attempter has disabled the webhook. Its other deliveries become
	// Undelivered when they are due.
	Disable bool
}

// State is the state of a webhook's breaker. Engines store it durably.
type State struct {
	// Failures is the number of attempts since the last success, without those that began before
	// OpenUntil.
	Failures int
	// FailingSince is the time of the first failure since the last success, zero without one.
	FailingSince time.Time
	LastSuccess  time.Time
	// OpenUntil is the end of the breaker's open time. No attempt is made before. Afterwards one
	// attempt at a time is made until one succeeds.
	OpenUntil time.Time
}
