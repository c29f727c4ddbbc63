package ahds

import (
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/store"
)

// AppointmentKind defines the events of availability slots. They are about the appointment that a
// booked slot represents. Booking a slot creates the appointment. Changing or releasing a booked
// slot updates it. Deleting a slot has no event. The data of an event is the slot as a read returns
// it.
var AppointmentKind = &events.Kind{
	Moment: func(change store.Change) events.Moment {
		if change.After.Deleted {
			return events.None
		}
		was, is := slot.Read(contentOf(change.Before)).Booked, slot.Read(contentOf(change.After)).Booked
		switch {
		case is && !was:
			return events.Creation
		case was: // updates that change no field have no events
			return events.Update
		default:
			return events.None
		}
	},
	Fields: func(body store.Body) []byte {
		object, err := schema.Members(body.JSON)
		if err != nil {
			return nil
		}
		return object.Get(memberContent)
	},
	Data: func(change store.Change) events.Text {
		w := schema.NewWriter(nil)
		w.String(slots.idField, change.After.Key.ID)
		slots.fields.Append(w, contentOf(change.After))
		var text events.Text
		time := func(name, known string) {
			w.String(name, known)
			if known == "" {
				text.TimeOffsets = append(text.TimeOffsets, len(w.Done())-len(`"}`))
			}
		}
		created := ""
		if before := change.Before; before != nil && !before.Deleted {
			created = schema.Stamp(before.Created)
		}
		time("createdAt", created)
		time("updatedAt", "")
		text.JSON = w.Done()
		return text
	},
}

// contentOf returns the content of a version of a slot. It is nil if the version is nil, deleted or
// invalid.
func contentOf(version *store.Record) schema.Content {
	if version == nil || version.Deleted {
		return nil
	}
	s, err := slots.decode(version.Body.JSON)
	if err != nil {
		return nil
	}
	return s.content
}
