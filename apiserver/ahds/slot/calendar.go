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
	// Now is the current time. A hold is shown unless it ended before that time.
	Now time.Time
}

// WriteCalendar writes slots as a calendar (RFC 5545). It includes the service type but not the
// notes and extensions, because anyone with the URL can read the calendar.
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

// service returns the display text of the service type, or its code without one.
func (e Event) service() string {
	if display := e.State.Content.Member("serviceType", "display"); display != "" {
		return display
	}
	return e.State.Content.Member("serviceType", "code")
}
