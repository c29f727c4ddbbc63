package ahds

import (
	"net/http"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// slotOf returns the state of a slot from its record.
func slotOf(id string, s stored) slot.State {
	return slot.State{ID: id, Content: s.content, Hold: s.service.Hold}
}

// withState returns the record with a new state of its slot.
func (s stored) withState(next slot.State) stored {
	s.content, s.service.Hold = next.Content, next.Hold
	return s
}

// changeSlot applies a client's write to a slot.
func changeSlot(id string, before stored, w write, now time.Time) (stored, error) {
	next, err := slotOf(id, before).Change(slot.Write{
		Content: w.content, Books: schema.Bool(w.sent.Get("isBooked")), Seen: w.seen,
	}, now)
	return before.withState(next), err
}

func slotClaims(s stored, now time.Time) []store.Claim { return slotOf("", s).Claims(now) }

// serveHold writes the end of the last hold, even if it has passed.
func serveHold(_ *handler, _ *request, _ store.Record, s stored, to *schema.Writer) {
	if s.service.Hold != nil {
		to.String("heldUntil", schema.Stamp(s.service.Hold.Until))
	}
}

// tokens returns the tokens of holds of a slot.
func (h *handler) tokens(r *request, id string) slot.Tokens {
	return slot.Tokens{Keys: h.HoldKeys(), Slot: r.site.ID + "/" + id}
}

// hold serves POST …/availability-slot/{id}/hold.
func (h *handler) hold(w http.ResponseWriter, r *request) error {
	nonce := slot.NewNonce()
	rec, err := h.transition(w, r, slot.HoldFields, func(s slot.State, t slot.Tokens, asked schema.Content) (slot.State, error) {
		return s.Take(t, asked, nonce, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondWritten(w, r, http.StatusOK, slots, rec, func(to *schema.Writer) {
		if s, err := slots.decode(rec.Body.JSON); err == nil && s.service.Hold != nil {
			to.String("holdToken", h.tokens(r, rec.Key.ID).Of(s.service.Hold))
		}
	})
}

// book serves POST …/availability-slot/{id}/book.
func (h *handler) book(w http.ResponseWriter, r *request) error {
	rec, err := h.transition(w, r, slot.TokenFields, func(s slot.State, t slot.Tokens, asked schema.Content) (slot.State, error) {
		return s.Book(t, asked, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondWritten(w, r, http.StatusOK, slots, rec, nil)
}

// release serves POST …/availability-slot/{id}/release.
func (h *handler) release(w http.ResponseWriter, r *request) error {
	rec, err := h.transition(w, r, slot.TokenFields, func(s slot.State, t slot.Tokens, asked schema.Content) (slot.State, error) {
		return s.Release(t, asked, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondWritten(w, r, http.StatusOK, slots, rec, nil)
}

// transition reads a request with the given fields and changes the slot of the path with decide.
func (h *handler) transition(
	w http.ResponseWriter, r *request, fields schema.Fields, decide func(slot.State, slot.Tokens, schema.Content) (slot.State, error),
) (store.Record, error) {
	key, err := r.idempotencyKey()
	if err != nil {
		return store.Record{}, err
	}
	asked, text, err := r.readOptions(w, fields)
	if err != nil {
		return store.Record{}, err
	}
	return h.change(r, slots, store.MethodPost, key.of(r, text), func(rec store.Record, before stored, _ bool) (stored, error) {
		next, err := decide(slotOf(rec.Key.ID, before), h.tokens(r, rec.Key.ID), asked)
		return before.withState(next), err
	})
}
