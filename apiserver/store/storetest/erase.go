package storetest

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/store"
)

// testErase tests that Op.Erase removes the events about a record, also events that were stored with
// other records, and that it removes no other events.
func testErase(t *testing.T, open Open) {
	s, other := open(t)
	about := func(op store.Op, id, subject string) store.Op {
		op.Events = func(store.Change) []store.Event { return []store.Event{newEvent(id, "changed", subject)} }
		return op
	}
	event := func(id string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: "Event", ID: id}, Method: store.MethodPost, Body: body(1)}
	}
	write(t, s, about(put("rex", body(1)), "e1", "Patient/rex"))
	write(t, s, about(put("rex", body(2)), "e2", "Patient/rex"))
	write(t, s, about(put("rex2", body(1)), "e3", "Patient/rex2"))
	write(t, s, about(event("posted"), "e4", "patient/REX"))
	write(t, s, about(event("kept"), "e5", "Device/rex"))
	write(t, s, about(event("general"), "e6", ""))
	same(t, "events before", len(events(t, s)), 6)

	erase := store.Op{Kind: store.Purge, Key: key("Rex"), Method: store.MethodDelete, Erase: true}
	refused := erase
	refused.If = store.Precondition{Version: 7}
	if _, err := s.Write(t.Context(), []store.Op{refused}); !store.IsConflict(err) {
		t.Errorf("erase with a wrong version: got %v, want a conflict", err)
	}
	same(t, "events after a refused erase", len(events(t, s)), 6)

	same(t, "outcome", write(t, s, erase).Outcome, store.Removed)
	for name, replica := range map[string]store.Store{"same replica": s, "other replica": other} {
		if _, err := replica.Get(t.Context(), key("rex")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: get after erase: got %v, want ErrNotFound", name, err)
		}
	}
	same(t, "events after", eventTypes(events(t, s)), []string{"changed Patient/rex2", "changed Device/rex", "changed "})
	if _, err := s.Get(t.Context(), store.Key{Type: "Event", ID: "posted"}); err != nil {
		t.Errorf("the record of a posted event: %v", err)
	}

	// A purge that crashed after the record was gone is repeated.
	write(t, s, about(event("late"), "e7", "Patient/rex"))
	same(t, "outcome of the second erase", write(t, s, erase).Outcome, store.Unchanged)
	same(t, "events after the second erase", len(events(t, s)), 3)

	// A batch of erasures removes the events of each of its records.
	const erased = 12
	for n := range erased + 1 {
		id := fmt.Sprintf("many%d", n)
		write(t, s, about(put(id, body(1)), "m"+id, "Patient/"+id))
	}
	var group errgroup.Group
	for n := range erased {
		op := erase
		op.Key = key(fmt.Sprintf("many%d", n))
		group.Go(func() error {
			_, err := s.Write(t.Context(), []store.Op{op})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	same(t, "events after erasures at the same time", eventTypes(events(t, s)),
		[]string{"changed Patient/rex2", "changed Device/rex", "changed ", fmt.Sprintf("changed Patient/many%d", erased)})
}
