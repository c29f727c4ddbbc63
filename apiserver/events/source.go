package events

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Source creates the events of one Site.
type Source struct {
	// SiteID is the value of siteId in events.
	SiteID string
	// Mappings are the types of events that changes of records cause, by record type.
	Mappings map[string]Mapping
	// KindOf returns how events describe records of a type. It returns nil for a type without events.
	KindOf func(recordType string) *Kind
	// Targets returns the ids of the webhooks that currently get events of a type.
	// Errors: store.ErrUnavailable.
	Targets func(eventType string) ([]string, error)
	// Restricts reports whether a version of a record is hidden from some callers who may read records
	// of its type.
	Restricts func(recordType string, body store.Body) bool
}

// Mapping has the types of events for changes of one record type. An empty type means no event.
type Mapping struct{ Created, Updated string }

// Kind is how events describe the records of one type.
type Kind struct {
	// Moment returns the effect of a change on the subject of the event. An Update that changes no
	// member of Fields causes no event.
	Moment func(change store.Change) Moment
	// Fields returns the JSON object whose members are compared to find the changed fields.
	Fields func(body store.Body) []byte
	// Data returns the record after the change, as the API of its type represents the record.
	Data func(change store.Change) Text
}

// Moment is the effect of a change on the subject of an event, such as an appointment. It is not a
// moment of time.
type Moment int

// Values of Moment.
const (
	// None means that the change causes no event.
	None Moment = iota
	// Creation means that the change creates the subject.
	Creation
	// Update means that the change modifies a subject that existed before.
	Update
)

// MomentOf returns the Moment of a change if the events are about the record itself.
func MomentOf(change store.Change) Moment {
	switch change.Outcome {
	case store.Created:
		return Creation
	case store.Updated:
		return Update
	default:
		return None
	}
}

// Of returns the function for Op.Events of an operation. It is nil if the operation causes no
// events, or if currently no webhook gets them. Errors: store.ErrUnavailable.
func (s *Source) Of(op store.Op) (func(store.Change) []store.Event, error) {
	mapping, mapped := s.Mappings[op.Key.Type]
	if op.Kind != store.Put || !mapped {
		return nil, nil
	}
	kind := s.KindOf(op.Key.Type)
	if kind == nil {
		return nil, nil
	}
	created, err := s.targets(mapping.Created)
	if err != nil {
		return nil, err
	}
	updated, err := s.targets(mapping.Updated)
	if err != nil || len(created) == 0 && len(updated) == 0 {
		return nil, err
	}
	// An operation causes at most one event. Its id is chosen here, because the function may be called
	// more than once for the same write.
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("create the id of an event: %w", err)
	}
	return func(change store.Change) []store.Event {
		if change.After == nil {
			return nil
		}
		event := store.Event{ID: id.String(), Subject: change.After.Key.Type + "/" + change.After.Key.ID}
		moment := kind.Moment(change)
		switch moment {
		case Creation:
			event.Type, event.Targets = mapping.Created, created
		case Update:
			event.Type, event.Targets = mapping.Updated, updated
		}
		if len(event.Targets) == 0 {
			return nil
		}
		made := content{id: event.ID, eventType: event.Type, site: s.SiteID, subject: event.Subject, data: kind.Data(change)}
		if moment == Update && change.Before != nil {
			made.changedFields = ChangedFields(kind.Fields(change.Before.Body), kind.Fields(change.After.Body))
			if made.changedFields != nil && len(made.changedFields) == 0 {
				return nil // the write changed no member of Fields
			}
		}
		event.Restricted = s.Restricts(change.After.Key.Type, change.After.Body)
		event.Envelope = made.envelope()
		return []store.Event{event}
	}, nil
}

func (s *Source) targets(eventType string) ([]string, error) {
	if eventType == "" {
		return nil, nil
	}
	return s.Targets(eventType)
}

// Published is an event that another program publishes.
type Published struct {
	ID, Type string
	// Subject is what the event is about. It may be empty.
	Subject string
	// OccurredAt is the time of the event as a JSON string. If empty, it is the time of the write.
	OccurredAt jsontext.Value
	// ChangedFields are the names of changed fields. It is nil if the program does not list them.
	ChangedFields []string
	// Data is the data of the event, a JSON object.
	Data jsontext.Value
}

// Published returns the function for Op.Events of the operation that stores an event. It is nil if
// currently no webhook gets the event. Errors: store.ErrUnavailable.
func (s *Source) Published(p Published) (func(store.Change) []store.Event, error) {
	targets, err := s.targets(p.Type)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	return s.sendTo(p, targets, s.restrictsData(p.Data)), nil
}

// Test returns the function for Op.Events of the operation that stores a test event. The event has
// the example of its type as data. It is sent to one webhook, even if its type is not enabled.
func (s *Source) Test(id string, of Type, webhook string) func(store.Change) []store.Event {
	return s.sendTo(Published{ID: id, Type: of.Name, Data: of.Example}, []string{webhook}, false)
}

func (s *Source) sendTo(p Published, targets []string, restricted bool) func(store.Change) []store.Event {
	made := content{
		id: p.ID, eventType: p.Type, site: s.SiteID, subject: p.Subject, timestamp: p.OccurredAt,
		changedFields: p.ChangedFields, data: Text{JSON: p.Data},
	}
	events := []store.Event{{
		ID: p.ID, Type: p.Type, Subject: p.Subject, Targets: targets, Restricted: restricted, Envelope: made.envelope(),
	}}
	return func(store.Change) []store.Event { return events }
}

// restrictsData reports whether data is a FHIR resource that would be hidden from some callers as a
// record of the Site.
func (s *Source) restrictsData(data jsontext.Value) bool {
	found, _ := members(data)
	name, err := jsontext.AppendUnquote(nil, found["resourceType"])
	if err != nil || len(name) == 0 {
		return false
	}
	body := store.Body{JSON: data}
	if at := opensAt(data, "meta"); at > 0 {
		body.MetaOffset = at
	}
	return s.Restricts(string(name), body)
}

// opensAt returns the offset in text directly after the opening brace of the member with a name. It
// returns 0 if text has no such member, or if the member is not an object.
func opensAt(text jsontext.Value, name string) int {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := decoder.ReadToken(); err != nil {
		return 0
	}
	for decoder.PeekKind() == jsontext.KindString {
		token, err := decoder.ReadToken()
		if err != nil {
			return 0
		}
		wanted := token.String() == name
		if wanted && decoder.PeekKind() == jsontext.KindBeginObject {
			if _, err := decoder.ReadToken(); err != nil {
				return 0
			}
			return int(decoder.InputOffset())
		}
		if err := decoder.SkipValue(); err != nil {
			return 0
		}
	}
	return 0
}
