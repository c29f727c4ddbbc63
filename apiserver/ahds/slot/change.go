package slot

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The codes of what stands against a change.
const (
	CodeBooked   = "slot_booked"
	CodeHeld     = "slot_held"
	CodeInactive = "slot_inactive"
	CodeEnded    = "hold_ended"
	CodeConflict = "slot_conflict"
)

// RefusedError says that a slot is not in a state for what is asked.
type RefusedError struct {
	Code, Detail string
	// Slot is the id of the one that is asked for.
	Slot string
}

func (e *RefusedError) Error() string { return e.Detail }

// Hold keeps a slot for somebody for a while.
type Hold struct {
	// Nonce makes the token of each hold another.
	Nonce string    `json:"nonce"`
	Until time.Time `json:"until"`
}

// State is a slot as it is stored.
type State struct {
	ID      string
	Content document.Content
	// Hold is the last one, nil when it was given up or used. It counts until it ends.
	Hold *Hold
}

func (s State) held(now time.Time) bool { return s.Hold != nil && now.Before(s.Hold.Until) }

// Claims are what a slot holds: nothing, its time until the hold ends, or its time.
func (s State) Claims(now time.Time) []store.Claim {
	switch slot := Read(s.Content); {
	case !slot.Active:
		return []store.Claim{}
	case slot.Booked:
		return []store.Claim{slot.Claim(time.Time{})}
	case s.held(now):
		return []store.Claim{slot.Claim(s.Hold.Until)}
	default:
		return []store.Claim{}
	}
}

// Write is how a client changes a slot's content.
type Write struct {
	Content document.Content
	// Books tells that the client asks for the slot to be booked, and not only leaves it so.
	Books bool
	// Seen tells that the client has seen the slot as it is now.
	Seen bool
}

// Change is what a client's write makes of a slot. Only one of the clients that set
// isBooked may believe that the slot is theirs: whoever comes later is refused, unless
// they show that they know of the booking.
func (s State) Change(w Write, now time.Time) (State, error) {
	before, after := Read(s.Content), Read(w.Content)
	switch {
	case w.Books && before.Booked && !w.Seen:
		return State{}, s.refused(CodeBooked, "the slot is booked already")
	case after.Booked && !before.Booked && s.held(now):
		return State{}, s.isHeld()
	}
	next := State{ID: s.ID, Content: w.Content}
	if s.held(now) && after.Active && !after.Booked {
		next.Hold = s.Hold
	}
	return next, nil
}

func (s State) refused(code, detail string) error { return &RefusedError{code, detail, s.ID} }

func (s State) isHeld() error {
	return s.refused(CodeHeld, "the slot is held until "+document.Stamp(s.Hold.Until)+"; whoever holds it books it with the token of the hold")
}
