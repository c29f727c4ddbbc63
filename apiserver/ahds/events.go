package ahds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// MaxEvents is the default of limits.maxEventsPerRequest of a Site, the maximum number of
	// events of a request. It is also the largest maximum that a Site can set. A request with more
	// is answered with 400.
	MaxEvents = 500
	// eventResource and eventTypeResource are Kubernetes RBAC resources.
	eventResource     = "events"
	eventTypeResource = "eventtypes"
	eventSegment      = "event"
	eventTypeSegment  = "event-type"
	eventIDField      = "eventId"
)

// acceptance is an event that is about to be stored.
type acceptance struct {
	op     store.Op
	memory event.Memory
}

// acceptEvents serves POST …/event. It responds when the events are durable.
func (h *handler) acceptEvents(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, many, text, err := r.readEvents(w)
	if err != nil {
		return err
	}
	published, err := event.Read(sent)
	if err != nil {
		return err
	}
	same, err := event.Twice(sent, published)
	if err != nil {
		return err
	}
	key = key.of(r, text)
	var accepted []acceptance
	for i := range published {
		if published[i].ID, err = r.eventID(published[i].ID, key, i); err != nil {
			return err
		}
		if same[i] {
			continue
		}
		a, err := h.acceptanceOf(r, published[i])
		if err != nil {
			return err
		}
		if i == 0 && key.key != "" {
			a.memory.Key, a.memory.Request, a.op.Claims = key.key, key.request, key.claims(h.Now())
		}
		if a.op.Body, err = a.memory.Body(); err != nil {
			return err
		}
		accepted = append(accepted, a)
	}
	if err := acceptAll(r, accepted); err != nil {
		return err
	}
	return r.respond(w, http.StatusAccepted, typeJSON, acceptedBody(published, many))
}

// acceptedBody returns the ids of events in the order of the request.
func acceptedBody(published []events.Published, many bool) []byte {
	items := []byte(`{"data":[`)
	for i, p := range published {
		one := schema.NewWriter(nil)
		one.String(eventIDField, p.ID)
		if !many {
			return one.Done()
		}
		if i > 0 {
			items = append(items, ',')
		}
		items = append(items, one.Done()...)
	}
	return append(items, `]}`...)
}

// readEvents reads the body in one of its formats. many is set for an array.
func (r *request) readEvents(w http.ResponseWriter) (sent []event.Sent, many bool, text []byte, err error) {
	kind, _, err := web.ParseContentType(r.Header, typeJSON, event.TypeCloudEvent, event.TypeCloudEventBatch)
	if err != nil {
		return nil, false, nil, err
	}
	if text, err = r.readBody(w); err != nil {
		return nil, false, nil, err
	}
	maxEvents := settings.Int(r.site.Limits.MaxEventsPerRequest, MaxEvents)
	switch {
	case kind == event.TypeCloudEvent:
		sent, err = event.ParseCloudEvent(text)
	case kind == event.TypeCloudEventBatch:
		sent, err = event.ParseCloudEvents(text, maxEvents)
		many = true
	case event.IsBinary(r.Header):
		sent, err = event.ParseBinary(r.Header, text)
	default:
		sent, many, err = event.Parse(text, maxEvents)
	}
	return sent, many, text, err
}

// eventID returns the id that the client chose. If it is empty, eventID derives an id from the
// idempotency key, so that a repeated request gets the same id. Without a key, the id is new.
func (r *request) eventID(chosen string, key idempotencyKey, i int) (string, error) {
	switch {
	case chosen != "":
		return chosen, nil
	case key.key != "":
		name := "https://paddock.health/site/" + r.site.ID + "/event#" + key.key + "#" + key.request + "#" + strconv.Itoa(i)
		return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String(), nil
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// acceptanceOf returns the operation that stores an event and its deliveries.
func (h *handler) acceptanceOf(r *request, p events.Published) (acceptance, error) {
	a := acceptance{
		op:     store.Op{Kind: store.Put, Key: event.KeyOf(p.ID), Method: store.MethodPost, If: store.Precondition{Absent: true}},
		memory: event.Memory{ID: p.ID, Type: p.Type, Subject: p.Subject, Made: event.Fingerprint(p)},
	}
	if r.site.Events == nil {
		return acceptance{}, fmt.Errorf("accept event %s: events of site %s are not configured: %w", p.ID, r.site.ID, store.ErrUnavailable)
	}
	var err error
	a.op.Events, err = r.site.Events.Published(p)
	return a, err
}

// acceptAll stores events: in one transaction if the storage has transactions. Otherwise it stores
// one event after the other, and after an error the events before it remain stored. Events that
// were accepted before with the same content are skipped. Errors: *eventTakenError,
// *keyReusedError, those of the store.
func acceptAll(r *request, accepted []acceptance) error {
	if r.site.Store.Atomic() {
		return accept(r, accepted)
	}
	for i := range accepted {
		if err := accept(r, accepted[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func accept(r *request, accepted []acceptance) error {
	for len(accepted) > 0 {
		ops := make([]store.Op, len(accepted))
		for i, a := range accepted {
			ops[i] = a.op
		}
		_, err := r.site.Store.Write(r.Context(), ops)
		var claimed *store.ClaimError
		switch {
		case err == nil:
			return nil
		case store.IsConflict(err):
			before := len(accepted)
			if accepted, err = unaccepted(r.Context(), r.site.Store, accepted); err != nil {
				return err
			}
			if len(accepted) < before {
				continue
			}
		case errors.As(err, &claimed) && isKeyClaim(claimed.Claim):
			_, err := r.site.Store.Get(r.Context(), claimed.Holder)
			if err == nil && claimed.Holder != ops[0].Key {
				return &keyReusedError{}
			}
			if err != nil && !store.IsAbsent(err) {
				return err
			}
		default:
			return err
		}
		// Another request is about to accept the event.
		if err := web.Sleep(r.Context(), poll); err != nil {
			return err
		}
	}
	return nil
}

// unaccepted returns those events that are not stored yet. Errors: *eventTakenError if an event is
// stored with other content, *keyReusedError if the event was stored by another request with the
// same Idempotency-Key.
func unaccepted(ctx context.Context, records store.Store, accepted []acceptance) ([]acceptance, error) {
	var left []acceptance
	var taken []string
	for _, a := range accepted {
		rec, err := records.Get(ctx, a.op.Key)
		if store.IsAbsent(err) {
			left = append(left, a)
			continue
		}
		if err != nil {
			return nil, err
		}
		known, err := event.MemoryOf(rec.Body)
		switch {
		case err != nil:
			return nil, err
		case known.Made != a.memory.Made:
			taken = append(taken, a.memory.ID)
		case a.memory.Key != "" && known.Key == a.memory.Key && known.Request != a.memory.Request:
			return nil, &keyReusedError{}
		}
	}
	if len(taken) > 0 {
		return nil, &eventTakenError{ids: taken}
	}
	return left, nil
}

// EventTypeLists are the parameters of the list of event types.
var EventTypeLists = list.Options[struct{}]{Fixed: true}

// eventTypes serves GET …/event-type.
func (h *handler) eventTypes(w http.ResponseWriter, r *request) error {
	asked, err := list.Parse(r.query, EventTypeLists)
	if err != nil {
		return err
	}
	types := events.Types()
	first := min(asked.Skip(), len(types))
	var items []jsontext.Value
	for _, t := range types[first:min(first+asked.PageSize, len(types))] {
		items = append(items, renderEventType(t))
	}
	return r.respond(w, http.StatusOK, typeJSON, asked.Envelope(items, int64(len(types))))
}

// eventType serves GET …/event-type/{type}.
func (h *handler) eventType(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	name := web.PathParameter(r.Request, "type")
	found, ok := events.TypeOf(name)
	if !ok {
		return &eventTypeUnknownError{name: name}
	}
	return r.respond(w, http.StatusOK, typeJSON, renderEventType(found))
}

func renderEventType(t events.Type) []byte {
	w := schema.NewWriter(nil)
	w.String("eventType", t.Name)
	w.String("description", t.Description)
	w.Raw("schema", t.Schema)
	w.Raw("example", t.Example)
	return w.Done()
}

// eventTakenError reports ids that were used for events with other content.
type eventTakenError struct{ ids []string }

func (e *eventTakenError) Error() string {
	const maxListed = 10
	text := "another event with other content has the eventId "
	for i, id := range e.ids[:min(maxListed, len(e.ids))] {
		if i > 0 {
			text += ", "
		}
		text += fielderror.Quote(id)
	}
	if len(e.ids) > maxListed {
		text += " and " + strconv.Itoa(len(e.ids)-maxListed) + " more ids"
	}
	return text + "; send each event with an id of its own, and repeat an id only to retry its event"
}

// eventTypeUnknownError reports an unknown event type.
type eventTypeUnknownError struct{ name string }

func (e *eventTypeUnknownError) Error() string {
	return fielderror.Quote(e.name) + " is not an event type" + suggest.Among(e.name, events.TypeNames(), "known names are")
}
