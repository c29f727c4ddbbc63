package slot

import (
	"io"
	"time"

	ics "github.com/arran4/golang-ical"
)

// Event is a slot as an event of a calendar.
type Event struct {
	Site    string
	State   State
	Version int64
	Updated time.Time
	// Now decides whether a hold counts.
	Now time.Time
}

// WriteCalendar writes slots as a calendar (RFC 5545). What a slot is for is told, its
// notes and extensions are not: whoever has the address can read it.
func WriteCalendar(to io.Writer, name string, events []Event) error {
	calendar := ics.NewCalendar()
	calendar.SetProductId("-//Paddock//Availability slots//EN")
	calendar.SetMethod(ics.MethodPublish)
	if name != "" {
		calendar.SetXWRCalName(name)
	}
	calendar.SetRefreshInterval("PT15M")
	for _, event := range events {
		event.addTo(calendar)
	}
	return calendar.SerializeTo(to, ics.WithNewLineWindows)
}

func (e Event) addTo(calendar *ics.Calendar) {
	slot := Read(e.State.Content)
	to := calendar.AddEvent(e.State.ID + "@" + e.Site + ".paddock.health")
	to.SetDtStampTime(e.Updated)
	to.SetModifiedAt(e.Updated)
	to.SetSequence(int(e.Version - 1))
	to.SetStartAt(slot.Start)
	to.SetEndAt(slot.End)
	state, status, shown := "Free", ics.ObjectStatusConfirmed, ics.TransparencyTransparent
	switch {
	case slot.Booked:
		state, shown = "Booked", ics.TransparencyOpaque
	case e.State.held(e.Now):
		state, status, shown = "Held", ics.ObjectStatusTentative, ics.TransparencyOpaque
	}
	if service := e.service(); service != "" {
		state += ": " + service
	}
	to.SetSummary(state)
	to.SetStatus(status)
	to.SetTimeTransparency(shown)
}

// service is what the slot is for, in words if there are some.
func (e Event) service() string {
	if display := e.State.Content.Member("serviceType", "display"); display != "" {
		return display
	}
	return e.State.Content.Member("serviceType", "code")
}
