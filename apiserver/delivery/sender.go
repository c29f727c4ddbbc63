package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// SenderConfig configures a Sender.
type SenderConfig struct {
	Egress Egress
	// UserAgent is the User-Agent of requests. Default: Paddock-Webhooks.
	UserAgent string
	// Metrics counts attempts. If nil, attempts are not counted.
	Metrics *Metrics
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Now returns the current time. Default: time.Now. Random returns numbers in [0, 1). Default:
	// rand.Float64.
	Now    func() time.Time
	Random func() float64
}

// Sender sends events to the webhooks of all sites. It is safe for concurrent use.
type Sender struct {
	config     SenderConfig
	transports *transports
}

// NewSender returns a Sender.
func NewSender(config SenderConfig) *Sender {
	if config.UserAgent == "" {
		config.UserAgent = "Paddock-Webhooks"
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = rand.Float64
	}
	return &Sender{config: config, transports: newTransports(config.Egress)}
}

// Site returns the Attempter of one Site.
func (s *Sender) Site(siteID string, webhooks Webhooks, log Log) Attempter {
	return &attempter{Sender: s, siteID: siteID, webhooks: webhooks, log: log}
}

// attempter implements Attempter.
type attempter struct {
	*Sender
	siteID   string
	webhooks Webhooks
	log      Log
}

// Attempt implements Attempter.
func (a *attempter) Attempt(ctx context.Context, id string, event store.AcceptedEvent, attempts int) (Outcome, error) {
	webhook, err := a.webhooks.Webhook(ctx, id, event.Accepted)
	attempt := Attempt{At: a.config.Now()}
	var secret *SecretError
	switch {
	case ctx.Err() != nil:
		return Outcome{}, ctx.Err()
	case errors.Is(err, store.ErrNotFound):
		return a.withheld(attempt, "the webhook does not exist any more"), nil
	case errors.As(err, &secret) && secret.Webhook.Disabled != "":
		return a.withheld(attempt, secret.Webhook.Disabled), nil
	case errors.As(err, &secret):
		attempt.Reason, attempt.Message = ReasonSecret, secret.Problem
		return a.outcomeOf(ctx, secret.Webhook, event, attempt, attempts, 0)
	case err != nil:
		return Outcome{}, fmt.Errorf("read the settings of webhook %s: %w", id, err)
	case webhook.Disabled != "":
		return a.withheld(attempt, webhook.Disabled), nil
	}
	attempt, wait, err := a.send(ctx, webhook, event, attempt)
	if err != nil {
		return Outcome{}, err
	}
	return a.outcomeOf(ctx, webhook, event, attempt, attempts, wait)
}

// withheld returns the outcome of a delivery to a webhook that is disabled or does not exist.
// Nothing is sent.
func (a *attempter) withheld(attempt Attempt, why string) Outcome {
	attempt.Reason, attempt.Message = ReasonDisabled, why
	a.config.Metrics.attempted(attempt.Reason)
	return Outcome{Attempt: attempt, Status: Undelivered}
}

// send sends the request of an attempt and returns the attempt with its result. wait is the pause that
// the receiver asks for before the next attempt. Errors: ctx.Err() if ctx ends; another error if the
// Envelope of the event is invalid.
func (a *attempter) send(ctx context.Context, webhook Webhook, event store.AcceptedEvent, attempt Attempt) (done Attempt, wait time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, webhook.Timeout)
	defer cancel()
	body, err := Payload(event, webhook.Fields, webhook.Cleared)
	if err != nil {
		return attempt, 0, err
	}
	request, err := newRequest(limited, webhook, a.config.UserAgent, event.ID, attempt.At, body)
	var secret *SecretError
	if errors.As(err, &secret) {
		attempt.Reason, attempt.Message = ReasonSecret, secret.Problem
		return attempt, 0, nil
	}
	var got answer
	if err == nil {
		got, err = a.transports.exchange(request, webhook)
	}
	if ctx.Err() != nil {
		return attempt, 0, ctx.Err()
	}
	attempt.Duration = a.config.Now().Sub(attempt.At)
	attempt.StatusCode, attempt.Response = got.status, got.body
	attempt.Reason, attempt.Message = judge(got, err, webhook.Timeout)
	if attempt.Reason == ReasonThrottled {
		wait = retryAfter(got.header, a.config.Now())
	}
	return attempt, wait, nil
}

// outcomeOf returns the outcome of an attempt. After a failed attempt it may disable the webhook.
func (a *attempter) outcomeOf(
	ctx context.Context, webhook Webhook, event store.AcceptedEvent, attempt Attempt, attempts int, wait time.Duration,
) (Outcome, error) {
	a.config.Metrics.attempted(attempt.Reason)
	ended := attempt.At.Add(attempt.Duration)
	if attempt.Reason == ReasonDelivered {
		a.config.Metrics.delivered(ended.Sub(event.Accepted))
		return Outcome{Attempt: attempt, Status: Delivered}, nil
	}
	failed := attempt
	if event.Restricted {
		failed.Message = attempt.OwnMessage() // all who may read the Webhook see why it is disabled
	}
	if a.disable(ctx, webhook, failed) {
		return Outcome{Attempt: attempt, Status: Undelivered, Disable: true}, nil
	}
	delay, more := pause(webhook.Delays, attempts, a.config.Random())
	if !more {
		return Outcome{Attempt: attempt, Status: Failed}, nil
	}
	return Outcome{Attempt: attempt, Status: Pending, Next: ended.Add(max(delay, wait))}, nil
}

// disable disables a webhook if an attempt failed with ReasonGone, or if all attempts have failed for at
// least DisableAfter. It reports whether it has disabled the webhook. If the webhook cannot be disabled,
// the error is logged, and the next failed attempt tries again.
func (a *attempter) disable(ctx context.Context, webhook Webhook, attempt Attempt) bool {
	cause, message := CauseGone, attempt.Message
	if attempt.Reason != ReasonGone {
		since, err := a.failingSince(ctx, webhook, attempt.At)
		if err != nil {
			a.config.Log.WarnContext(ctx, "cannot read when a webhook began to fail", "site", a.siteID, "webhook", webhook.ID, "err", err)
			return false
		}
		if since.IsZero() || attempt.At.Sub(since) < DisableAfter {
			return false
		}
		cause = CauseFailing
		message = fmt.Sprintf("all attempts have failed since %s; the last one: %s", since.UTC().Format(time.RFC3339), attempt.Message)
	}
	if err := a.webhooks.Disable(ctx, webhook, cause, message); err != nil {
		a.config.Log.ErrorContext(ctx, "cannot disable a webhook", "site", a.siteID, "webhook", webhook.ID, "cause", cause, "err", err)
		return false
	}
	a.config.Metrics.disabled(cause)
	return true
}

// failingSince returns since when all attempts of a webhook with its current settings have failed. It
// is zero if no failure before this attempt is known. Before it returns a time that disables the
// webhook, it reads the log, because the last report may be outdated.
func (a *attempter) failingSince(ctx context.Context, webhook Webhook, now time.Time) (time.Time, error) {
	if webhook.FailingSince.IsZero() {
		return time.Time{}, nil
	}
	if since := later(webhook.FailingSince, webhook.Changed); now.Sub(since) < DisableAfter {
		return since, nil
	}
	health, err := a.log.Health(ctx)
	if err != nil {
		return time.Time{}, err
	}
	failing := health[webhook.ID].FailingSince
	if failing.IsZero() {
		return time.Time{}, nil
	}
	return later(failing, webhook.Changed), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
