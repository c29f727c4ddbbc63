package slot

import (
	"cmp"
	"io"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"
)

// Event is a slot as an event of a calendar.
type Event struct {
	site, id string
	slot     Slot
	held     bool
	// service is the display text of the service type, or the code if there is no display text.
	service string
	version int64
	updated time.Time
}

// Event returns a version of the slot as an event of a site. It shows a hold that has not ended at
// now. The event does not keep the content of the slot, which can be large, in memory.
func (s State) Event(site string, version int64, updated, now time.Time) Event {
	return Event{
		site: site, id: s.ID, slot: Read(s.Content), held: s.held(now), version: version, updated: updated,
		service: cmp.Or(s.Content.Member("serviceType", "display"), s.Content.Member("serviceType", "code")),
	}
}

// WriteCalendar writes slots as a calendar (RFC 5545). It includes the service type but not the
// notes and extensions, because anyone with the URL can read the calendar.
func WriteCalendar(to io.Writer, name string, events []Event) error {
	calendar := ics.NewCalendar()
	calendar.SetProductId("-//Paddock//Availability slots//EN")
	calendar.SetMethod(ics.MethodPublish)
	if name != "" {
		calendar.SetXWRCalName(withoutControls(name))
	}
	calendar.SetRefreshInterval("PT15M")
	for _, event := range events {
		event.addTo(calendar)
	}
	return calendar.SerializeTo(to, ics.WithNewLineWindows)
}

func (e Event) addTo(calendar *ics.Calendar) {
	to := calendar.AddEvent(e.id + "@" + e.site + ".paddock.health")
	to.SetDtStampTime(e.updated)
	to.SetModifiedAt(e.updated)
	to.SetSequence(int(e.version - 1))
	to.SetStartAt(e.slot.Start)
	to.SetEndAt(e.slot.End)
	state, status, shown := "Free", ics.ObjectStatusConfirmed, ics.TransparencyTransparent
	switch {
	case e.slot.Booked:
		state, shown = "Booked", ics.TransparencyOpaque
	case e.held:
		state, status, shown = "Held", ics.ObjectStatusTentative, ics.TransparencyOpaque
	}
	if e.service != "" {
		state += ": " + e.service
	}
	to.SetSummary(withoutControls(state))
	to.SetStatus(status)
	to.SetTimeTransparency(shown)
}

// withoutControls returns text with line feeds for all line breaks. It removes the control
// characters that RFC 5545 §3.3.11 does not allow in a text: all except line feed and tab.
func withoutControls(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == '\x7f' {
			return -1
		}
		return c
	}, lineBreaks.Replace(text))
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
