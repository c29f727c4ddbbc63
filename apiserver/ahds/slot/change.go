package slot

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The codes of refused changes. Clients depend on them.
const (
	CodeBooked   = "slot_booked"
	CodeHeld     = "slot_held"
	CodeInactive = "slot_inactive"
	CodeEnded    = "hold_ended"
	CodeConflict = "slot_conflict"
)

// RefusedError reports that the state of a slot does not allow a change.
type RefusedError struct {
	Code, Detail string
	// Slot is the id of the slot whose state refuses the change.
	Slot string
}

func (e *RefusedError) Error() string { return e.Detail }

// Hold reserves a slot for a client until a time.
type Hold struct {
	// Nonce is a random text that differs for each hold. The hold's token is computed from it.
	Nonce string    `json:"nonce"`
	Until time.Time `json:"until"`
}

// State is a slot as it is stored.
type State struct {
	ID      string
	Content schema.Content
	// Hold is the last hold, which may have ended. It is nil if the slot was released, booked or made
	// inactive after it, or changed after it had ended.
	Hold *Hold
}

func (s State) held(now time.Time) bool { return s.Hold != nil && now.Before(s.Hold.Until) }

// Claims returns the claim of an active slot on its resource's time. The claim of a booked slot
// does not expire, and that of a held slot expires when the hold ends. For other slots, the result
// is empty but not nil, so that a write releases the claims that the slot had.
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

// Write is a client's change of a slot's content.
type Write struct {
	Content schema.Content
	// Books is set if the client sent isBooked: true.
	Books bool
	// Seen is set if the client creates the slot, or replaces it and knows its current version.
	Seen bool
}

// Change returns the state of the slot after a client's write. If several clients set isBooked, only
// the first write succeeds. A later write is refused unless w.Seen is set. A write that books a
// held slot is also refused. Errors: *RefusedError.
func (s State) Change(w Write, now time.Time) (State, error) {
	before, after := Read(s.Content), Read(w.Content)
	switch {
	case w.Books && before.Booked && !w.Seen:
		return State{}, s.refused(CodeBooked, alreadyBooked)
	case after.Booked && !before.Booked && s.held(now):
		return State{}, s.isHeld()
	}
	next := State{ID: s.ID, Content: w.Content}
	if s.held(now) && after.Active && !after.Booked {
		next.Hold = s.Hold
	}
	return next, nil
}

const alreadyBooked = "the slot is already booked; choose another slot"

func (s State) refused(code, detail string) error { return &RefusedError{code, detail, s.ID} }

func (s State) isHeld() error {
	return s.refused(CodeHeld, "the slot is held until "+schema.Stamp(s.Hold.Until)+"; send the holdToken of the hold, or wait for its end")
}
