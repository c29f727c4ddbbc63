// Package relay forwards the deliveries of a webhook to a receiver that the site cannot reach, such
// as a port of the developer's machine. It reads the site's stream of deliveries and signs each
// request with a secret of its own. The secret of the webhook is not used.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

const (
	// silence is the time without data after which a stream is closed and opened again. The server
	// writes every 15 s.
	silence = 45 * time.Second
	// answerTimeout is the time limit of a request to the receiver, the default of a webhook's
	// timeoutSeconds.
	answerTimeout = 15 * time.Second
	// minPause and maxPause are the minimum and maximum delay before the stream is opened again. The
	// delay doubles with each failed attempt.
	minPause, maxPause = time.Second, 30 * time.Second
	// maxProblem is the maximum number of bytes that are read of a problem document. The rest is
	// ignored.
	maxProblem = 64 << 10
)

// Config has the settings of a Relay. All fields but LastEventID are required.
type Config struct {
	// Stream is the URL of the stream of the webhook: {site}/ahds/v1/webhook/{id}/delivery/stream.
	Stream string
	// Token returns the bearer token for the site. It is called for each connection. If it returns an
	// error, Run returns an error with the same text.
	Token func() (string, error)
	// ForwardTo is the URL of the receiver.
	ForwardTo string
	// Key signs the requests to the receiver.
	Key signing.Key
	// LastEventID is the id of the event after which to continue. If empty, only new events are
	// forwarded.
	LastEventID string
	// Out receives a line of text for each event and for each change of the connection. Control characters
	// in the text are replaced by spaces, because Out can be a terminal.
	Out io.Writer
}

// Relay forwards the deliveries of one webhook. Run must not be called twice.
type Relay struct {
	config Config
	client *http.Client
	last   string
	pause  time.Duration
}

// New returns a Relay. Run starts it.
func New(config Config) *Relay {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Relay{config: config, client: &http.Client{CheckRedirect: stay}, last: config.LastEventID, pause: minPause}
}

// LastEventID returns the last id that the stream sent, from which another Relay can continue, or
// Config.LastEventID if it sent none. A stream sends the id of its start before the first event.
// LastEventID must not be called while Run is running.
func (r *Relay) LastEventID() string { return r.last }

// refusal is an error after which another attempt would fail too.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// Run forwards deliveries until ctx is done, and then returns nil. When the connection ends, Run
// connects again and continues after the last delivery. It returns an error if the server refuses
// the stream or sends invalid deliveries, or if there is no token.
func (r *Relay) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, err := r.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		if refused := new(refusal); errors.As(err, &refused) {
			return err
		}
		wait = max(wait, r.pause)
		r.pause = min(2*r.pause, maxPause)
		r.say("not connected to the stream: %v; connecting again in %s", err, wait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil //nolint:nilerr // the caller has ended the connection
}

// follow forwards the deliveries of one connection until the connection ends. wait is the
// Retry-After of the response, or zero. Errors: *refusal. After other errors, Run connects again.
func (r *Relay) follow(ctx context.Context) (wait time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(fmt.Errorf("no data was received for %s", silence)) })
	defer silent.Stop()
	response, wait, err := r.open(ctx)
	if err != nil {
		return wait, errors.Join(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	r.pause = minPause
	r.say("connected")
	from := newReader(response.Body)
	for {
		m, err := from.next(func() { silent.Reset(silence) })
		if err != nil {
			return 0, errors.Join(context.Cause(ctx), err)
		}
		if m.event == "delivery" {
			silent.Stop() // a slow receiver does not count as silence
			err = r.forward(ctx, m.data)
			silent.Reset(silence)
		}
		if err != nil {
			return 0, err
		}
		r.last = m.id
	}
}

// open opens the stream. If the server has not responded with 200, it returns the Retry-After of
// the response, or zero, and an error. It returns at most maxPause. Errors: as for follow.
func (r *Relay) open(ctx context.Context) (*http.Response, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.config.Stream, nil)
	if err != nil {
		return nil, 0, &refusal{err.Error()}
	}
	token, err := r.config.Token()
	if err != nil {
		return nil, 0, &refusal{err.Error()}
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	if r.last != "" {
		request.Header.Set("Last-Event-ID", r.last)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	if response.StatusCode == http.StatusOK {
		return response, 0, nil
	}
	defer response.Body.Close()
	var problem struct{ Detail string }
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	_ = json.Unmarshal(body, &problem) // the body is not JSON if a proxy responded
	text := strings.TrimSuffix(fmt.Sprintf("the site responded with %s: %s", response.Status, problem.Detail), ": ")
	if response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests {
		return nil, 0, &refusal{text}
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 without one
	return nil, time.Duration(min(max(seconds, 0), int(maxPause/time.Second))) * time.Second, errors.New(text)
}

// delivery is the data of an event of the stream.
type delivery struct {
	EventID, EventType, Subject string
	// Body is the text to deliver, or nil if the site no longer stores it.
	Body *string
}

// forward sends a delivery to the receiver and reports the result in a line. It does not retry.
// Errors: *refusal if the delivery is invalid, and ctx.Err().
func (r *Relay) forward(ctx context.Context, data string) error {
	var d delivery
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		return &refusal{fmt.Sprintf("read a delivery from the stream: %v", err)}
	}
	if d.Body == nil {
		r.report(d, "not forwarded: the site no longer stores its body")
		return nil
	}
	began := time.Now()
	status, err := r.send(ctx, d.EventID, []byte(*d.Body), began)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		status = err.Error()
	}
	r.report(d, fmt.Sprintf("%s %s", status, time.Since(began).Round(time.Millisecond)))
	return nil
}

// send sends the request that the site would send to the webhook
// (https://www.standardwebhooks.com), and returns the status code of the response.
func (r *Relay) send(ctx context.Context, id string, body []byte, at time.Time) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.config.ForwardTo, strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Paddock-Listen")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	request.Header.Set("Webhook-Signature", signing.Sign([]signing.Key{r.config.Key}, id, at, body))
	response, err := r.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return strconv.Itoa(response.StatusCode), nil
}

// report writes the line of an event: time, type, subject, webhook-id and outcome.
func (r *Relay) report(d delivery, outcome string) {
	subject := d.Subject
	if subject == "" {
		subject = "-"
	}
	r.say("%s %s %s %s", d.EventType, subject, d.EventID, outcome)
}

// say writes a line. Its values can have text of the site or the receiver.
func (r *Relay) say(format string, values ...any) {
	_, _ = fmt.Fprintln(r.config.Out, time.Now().Format(time.TimeOnly), terminal.Safe(fmt.Sprintf(format, values...)))
}
