package ahds

import (
	"net/http"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// slotOf is a stored record as a slot.
func slotOf(id string, s stored) slot.State {
	return slot.State{ID: id, Content: s.content, Hold: s.kept.Hold}
}

// become is a stored record with a slot's new state.
func (s stored) become(next slot.State) stored {
	s.content, s.kept.Hold = next.Content, next.Hold
	return s
}

// changeSlot is what a client's write makes of a slot.
func changeSlot(id string, before stored, w write, now time.Time) (stored, error) {
	next, err := slotOf(id, before).Change(slot.Write{
		Content: w.content, Books: document.Bool(w.sent.Get("isBooked")), Seen: w.seen,
	}, now)
	return before.become(next), err
}

func slotClaims(s stored, now time.Time) []store.Claim { return slotOf("", s).Claims(now) }

// serveHold shows until when a slot is or was held.
func serveHold(_ *handler, _ *request, _ store.Record, s stored, to *document.Writer) {
	if s.kept.Hold != nil {
		to.String("heldUntil", document.Stamp(s.kept.Hold.Until))
	}
}

// tokens makes those of the holds of the path's slot.
func (h *handler) tokens(r *request, id string) slot.Tokens {
	return slot.Tokens{Key: h.TokenKey, Slot: r.site.ID + "/" + id}
}

// hold serves POST …/availability-slot/{id}/hold.
func (h *handler) hold(w http.ResponseWriter, r *request) error {
	nonce := slot.NewNonce()
	rec, err := h.ask(w, r, slot.HoldFields, func(s slot.State, t slot.Tokens, asked document.Content) (slot.State, error) {
		return s.Take(t, asked, nonce, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondRecord(w, r, http.StatusOK, slots, rec, func(to *document.Writer) {
		if s, err := slots.decode(rec.Body.JSON); err == nil && s.kept.Hold != nil {
			to.String("holdToken", h.tokens(r, rec.Key.ID).Of(s.kept.Hold))
		}
	})
}

// book serves POST …/availability-slot/{id}/book.
func (h *handler) book(w http.ResponseWriter, r *request) error {
	rec, err := h.ask(w, r, slot.TokenFields, func(s slot.State, t slot.Tokens, asked document.Content) (slot.State, error) {
		return s.Book(t, asked, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondRecord(w, r, http.StatusOK, slots, rec)
}

// release serves POST …/availability-slot/{id}/release.
func (h *handler) release(w http.ResponseWriter, r *request) error {
	rec, err := h.ask(w, r, slot.TokenFields, func(s slot.State, t slot.Tokens, asked document.Content) (slot.State, error) {
		return s.Release(t, asked, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondRecord(w, r, http.StatusOK, slots, rec)
}

// ask changes the path's slot by what is asked of it.
func (h *handler) ask(
	w http.ResponseWriter, r *request, fields document.Fields, become func(slot.State, slot.Tokens, document.Content) (slot.State, error),
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
		next, err := become(slotOf(rec.Key.ID, before), h.tokens(r, rec.Key.ID), asked)
		return before.become(next), err
	})
}
