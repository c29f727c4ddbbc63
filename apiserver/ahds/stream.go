package ahds

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	typeEventStream = "text/event-stream"
	// streamPoll is the interval at which a stream reads new deliveries from the log.
	streamPoll = time.Second
	// streamPage is the maximum number of deliveries of one read.
	streamPage = 20
	// streamWriteTimeout is how long a client may take to receive one write. A slower client's stream
	// ends.
	streamWriteTimeout = 30 * time.Second
	// lastEventID is the header in which a client sends the id of the last event that it received.
	lastEventID = "Last-Event-ID"
)

// Streams configures the streams of deliveries of one server process. A field that is zero has its
// default.
type Streams struct {
	// PerSite is the maximum number of open streams of one site, and All the maximum of all sites
	// together. A stream beyond either is refused with 429. Defaults: 8 and 64.
	PerSite, All int
	// KeepAlive is the interval at which a comment is written, so that proxies keep the connection
	// open. Default: 15 seconds.
	KeepAlive time.Duration
	// Recheck is the interval at which the token, the site and the rights of a stream's request are
	// checked again. The stream ends when that request would be refused. Default: one minute.
	Recheck time.Duration
	// Stopping ends all streams when it is closed, so that the shutdown of the server does not wait
	// for them. If nil, a shutdown does not end streams.
	Stopping <-chan struct{}
}

func (s Streams) withDefaults() Streams {
	s.PerSite, s.All = cmp.Or(s.PerSite, 8), cmp.Or(s.All, 64)
	s.KeepAlive, s.Recheck = cmp.Or(s.KeepAlive, 15*time.Second), cmp.Or(s.Recheck, time.Minute)
	return s
}

// streamCount counts open streams. It is safe for concurrent use.
type streamCount struct {
	mu    sync.Mutex
	all   int
	sites map[string]int
}

// enter counts another stream of a site until leave is called. Errors: *streamsError.
func (c *streamCount) enter(site string, limits Streams) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sites[site] >= limits.PerSite:
		return nil, &streamsError{of: "this site", limit: limits.PerSite}
	case c.all >= limits.All:
		return nil, &streamsError{of: "this server", limit: limits.All}
	}
	if c.sites == nil {
		c.sites = map[string]int{}
	}
	c.sites[site]++
	c.all++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.sites[site]--; c.sites[site] == 0 {
			delete(c.sites, site)
		}
	}, nil
}

// streamsError reports that the maximum number of streams is open.
type streamsError struct {
	of    string
	limit int
}

func (e *streamsError) Error() string {
	return fmt.Sprintf("%s has %d open streams of deliveries, which is the limit; close a stream or retry later", e.of, e.limit)
}

// stream serves GET …/webhook/{id}/delivery/stream: Server-Sent Events (HTML Living Standard §9.2)
// with the deliveries of a webhook, from now on or after Last-Event-ID. Unlike the delivery log it
// has the data of events. It therefore requires the right to create deliveries, and for a webhook
// with a clearance the right to see all records.
func (h *handler) stream(w http.ResponseWriter, r *request, op operation) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	at, err := r.lastEvent()
	if err != nil {
		return err
	}
	if _, err := r.streamed(); err != nil {
		return err
	}
	if at == (delivery.Position{}) {
		if _, at, err = r.site.Tail.After(r.Context(), strings.ToLower(r.id), at, 0); err != nil {
			return err
		}
	}
	leave, err := h.streams.enter(r.site.ID, h.Streams)
	if err != nil {
		return err
	}
	defer leave()
	s := &deliveryStream{handler: h, request: r, op: op, at: at, to: w, control: http.NewResponseController(w)}
	header := w.Header()
	web.SetContent(header, typeEventStream)
	header.Set("X-Accel-Buffering", "no") // a buffering proxy would delay events
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := s.run(r.Context()); err != nil && r.Context().Err() == nil {
		h.Log.InfoContext(r.Context(), "a stream of deliveries ended with an error", "site", r.site.ID, "webhook", r.id, "err", err)
	}
	return nil // the status has been sent; the client gets the error when it reconnects
}

// lastEvent returns the position in Last-Event-ID, and the zero position without the header.
func (r *request) lastEvent() (delivery.Position, error) {
	value := r.Header.Get(lastEventID)
	if value == "" {
		return delivery.Position{}, nil
	}
	at, err := delivery.ParsePosition(value)
	if err != nil {
		return at, fielderror.Errors{{In: fielderror.Header, At: lastEventID, Code: fielderror.CodeInvalidHeader, Detail: "the value is not the id of an event of this stream; send the last id received, or omit the header"}}
	}
	return at, nil
}

// streamed returns the webhook of the path if the caller may read its stream.
func (r *request) streamed() (webhook.Resource, error) {
	if r.site.Tail == nil || !r.site.isOpen(ResourceGroup) {
		return webhook.Resource{}, store.ErrUnavailable
	}
	hook, err := r.site.Webhooks.Get(r.Context(), r.id)
	if err == nil {
		err = guardClearance(r, hook.Content)
	}
	return hook, err
}

// deliveryStream is one open stream. at is the position up to which deliveries have been written.
type deliveryStream struct {
	*handler
	request *request
	op      operation
	at      delivery.Position
	to      http.ResponseWriter
	control *http.ResponseController
}

// run writes deliveries until the client disconnects or the server stops, and then returns nil. It
// returns an error if the request would be refused, or if deliveries cannot be read or written.
func (s *deliveryStream) run(ctx context.Context) error {
	poll, keepAlive, recheck := time.NewTimer(streamPoll), time.NewTicker(s.Streams.KeepAlive), time.NewTicker(s.Streams.Recheck)
	defer poll.Stop()
	defer keepAlive.Stop()
	defer recheck.Stop()
	// A client does not dispatch an event without data (§9.2.6), but stores its id for a reconnect.
	if err := s.write("id: " + s.at.String() + "\n\n"); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Streams.Stopping:
			return nil
		case <-recheck.C:
			if err := s.check(); err != nil {
				return err
			}
		case <-keepAlive.C:
			if err := s.write(": the stream is alive\nid: " + s.at.String() + "\n\n"); err != nil {
				return err
			}
		case <-poll.C:
			more, err := s.forward(ctx)
			if err != nil {
				return err
			}
			if more {
				poll.Reset(0)
			} else {
				poll.Reset(streamPoll)
			}
		}
	}
}

// check authenticates and authorizes the request again with the current settings of the site.
func (s *deliveryStream) check() error {
	if err := s.admit(s.request, s.op, s.request.site.ID); err != nil {
		return err
	}
	_, err := s.request.streamed()
	return err
}

// forward writes the next deliveries and reports whether there may be more.
func (s *deliveryStream) forward(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, next, err := s.request.site.Tail.After(ctx, strings.ToLower(s.request.id), s.at, streamPage)
	if err != nil || len(found) == 0 {
		s.at = next
		return false, err
	}
	hook, err := s.request.streamed()
	if err != nil {
		return false, err
	}
	var fields []string
	if err := json.Unmarshal(hook.Content["fields"], &fields); err != nil {
		return false, fmt.Errorf("read the fields of webhook %s: %w", hook.ID, err)
	}
	cleared := hook.Content.Text("clearance") == webhook.ClearancePrivileged
	for i := range found {
		data, err := renderStreamed(&found[i], fields, cleared)
		if err != nil {
			return false, err
		}
		if err := s.write("id: " + found[i].Position().String() + "\nevent: delivery\ndata: " + string(data) + "\n\n"); err != nil {
			return false, err
		}
		s.at = found[i].Position()
		if stopped(s.Streams.Stopping) {
			return false, nil
		}
	}
	s.at = next
	return len(found) == streamPage, nil
}

func stopped(stopping <-chan struct{}) bool {
	select {
	case <-stopping:
		return true
	default:
		return false
	}
}

// renderStreamed returns the JSON of a delivery. The body is a string because a signature covers
// its bytes. It is omitted if the log no longer has it.
func renderStreamed(d *delivery.Delivery, fields []string, cleared bool) ([]byte, error) {
	w := schema.NewWriter(nil)
	w.String("deliveryId", d.ID)
	w.String("webhookId", d.Webhook)
	w.String("eventId", d.Event.ID)
	w.String("eventType", d.Event.Type)
	if d.Event.Subject != "" {
		w.String("subject", d.Event.Subject)
	}
	w.String("acceptedAt", schema.Stamp(d.Event.Accepted))
	if len(d.Event.Envelope) > 0 {
		body, err := delivery.Payload(d.Event, fields, cleared)
		if err != nil {
			return nil, err
		}
		w.String("body", string(body))
	}
	return w.Done(), nil
}

// write sends and flushes text. It replaces the write deadline of the server, which limits the
// whole response, by streamWriteTimeout for this write.
func (s *deliveryStream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWriteTimeout)) // not supported by the ResponseWriter of requests through kube-apiserver
	if _, err := s.to.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
