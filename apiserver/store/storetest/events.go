package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// EventReader is an optional interface of a Store, by which the suite reads accepted events. The
// suite skips the tests of events if the Store does not implement EventReader.
type EventReader interface {
	// AcceptedEvents returns the stored events that have no deliveries yet, sorted by sequence.
	AcceptedEvents(ctx context.Context) ([]store.AcceptedEvent, error)
}

// events returns the accepted events of a site.
func events(t *testing.T, s store.Store) []store.AcceptedEvent {
	t.Helper()
	reader, ok := s.(EventReader)
	if !ok {
		t.Skip("the store does not offer its accepted events")
	}
	found, err := reader.AcceptedEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// eventTypes returns the type and the subject of each event, in the same order.
func eventTypes(found []store.AcceptedEvent) []string {
	types := []string{}
	for _, event := range found {
		types = append(types, event.Type+" "+event.Subject)
	}
	return types
}

// newEvent returns an event whose envelope has its id and all values that the engine inserts.
func newEvent(id, typeName, subject string) store.Event {
	head := fmt.Sprintf(`{"id":%q,"timestamp":"`, id)
	const sequence, version, updated = `","sequence":`, `,"data":{"meta":{"versionId":"`, `","lastUpdated":"`
	e := store.Envelope{JSON: []byte(head + sequence + version + updated + `"}}}`)}
	e.SequenceOffset = len(head + sequence)
	e.VersionOffset = len(head + sequence + version)
	e.TimeOffsets = []int{len(head), len(head + sequence + version + updated)}
	return store.Event{ID: id, Type: typeName, Subject: subject, Targets: []string{"one", "two"}, Envelope: e}
}

// withEvent returns the operation with one event for each change. The type of the event describes
// the Change that the engine passed to Op.Events, such as updated:1:2.
func withEvent(op store.Op) store.Op {
	op.Events = func(change store.Change) []store.Event {
		outcome := map[store.Outcome]string{store.Unchanged: "unchanged", store.Created: "created", store.Updated: "updated", store.Removed: "removed"}[change.Outcome]
		of := func(r *store.Record) string {
			switch {
			case r == nil:
				return "-"
			case r.Deleted:
				return strconv.FormatInt(r.Version, 10) + "x"
			default:
				return strconv.FormatInt(r.Version, 10)
			}
		}
		name := fmt.Sprintf("%s:%s:%s", outcome, of(change.Before), of(change.After))
		subject := op.Key.Type + "/" + op.Key.ID
		return []store.Event{newEvent(subject+" "+name, name, subject)}
	}
	return op
}

func testEventsOfRecord(t *testing.T, open Open) {
	s, other := open(t)
	same(t, "events before the first write", eventTypes(events(t, s)), []string{})
	posted := put("posted", body(1))
	posted.Method = store.MethodPost
	write(t, s, withEvent(posted))
	write(t, s, withEvent(put("rex", body(1))))
	write(t, other, withEvent(put("rex", body(2))))
	write(t, s, withEvent(put("rex", body(2))))
	write(t, s, withEvent(putWithMetadata("rex", body(2), `{"labels":{}}`)))
	write(t, s, put("rex", body(3)))
	write(t, other, withEvent(del("rex")))
	write(t, other, withEvent(del("rex")))
	write(t, s, withEvent(put("rex", body(4))))
	write(t, s, withEvent(claiming("rex", 5, hours("room", 1, 2))))
	write(t, s, withEvent(put("rex", body(6)))) // of a record with claims
	want := []string{
		"created:-:1 Patient/posted",
		"created:-:1 Patient/rex", "updated:1:2 Patient/rex", "removed:3:4x Patient/rex", "created:4x:5 Patient/rex",
		"updated:5:6 Patient/rex", "updated:6:7 Patient/rex",
	}
	for _, replica := range []store.Store{s, other} {
		same(t, "events", eventTypes(events(t, replica)), want)
	}
	checkAscending(t, events(t, s))
}

// checkAscending checks that the sequences of each subject ascend in the order of the list.
func checkAscending(t *testing.T, found []store.AcceptedEvent) {
	t.Helper()
	last := map[string]int64{}
	for _, event := range found {
		if event.Subject != "" && event.Sequence <= last[event.Subject] {
			t.Errorf("event %s has sequence %d after %d", event.ID, event.Sequence, last[event.Subject])
		}
		last[event.Subject] = event.Sequence
	}
}

func testNoEvents(t *testing.T, open Open) {
	s, other := open(t)
	_ = events(t, s)
	write(t, s, claiming("holder", 1, hours("room", 1, 3)))
	write(t, s, put("rex", body(1)))
	refused := func(what string, ops ...store.Op) {
		t.Helper()
		for i, op := range ops {
			ops[i] = withEvent(op)
		}
		if _, err := s.Write(t.Context(), ops); err == nil {
			t.Errorf("%s: the write succeeded", what)
		}
	}
	absent := put("rex", body(2))
	absent.If.Absent = true
	refused("create of what is there", absent)
	version := put("rex", body(2))
	version.If.Version = 7
	refused("update of another version", version)
	approve := put("rex", body(2))
	approve.If.Approve = func(*store.Record) error { return errors.New("no") }
	refused("refused by Approve", approve)
	refused("claim that another holds", claiming("late", 1, hours("room", 2, 4)))
	if s.Atomic() {
		refused("second operation fails", put("first", body(1)), absent)
		required := put("rex", body(2))
		required.Requires = []store.Key{key("nobody")}
		refused("required record is missing", required)
	}
	write(t, s, withEvent(del("nobody")))
	write(t, s, withEvent(store.Op{Kind: store.Purge, Key: key("nobody")}))
	write(t, other, put("rex", body(9)))
	same(t, "events", eventTypes(events(t, s)), []string{})
}

func testEventsOfSeveral(t *testing.T, open Open) {
	s, other := open(t)
	_ = events(t, s)
	if !s.Atomic() {
		t.Skip("the store writes one record at a time")
	}
	if _, err := s.Write(t.Context(), []store.Op{
		withEvent(put("b", body(1))), withEvent(put("a", body(1))), put("silent", body(1)), withEvent(put("a", body(2))),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Write(t.Context(), []store.Op{withEvent(del("a")), withEvent(put("b", body(1))), withEvent(putWithMetadata("b", body(1), `{"labels":{}}`))}); err != nil {
		t.Fatal(err)
	}
	found := events(t, s)
	same(t, "events", eventTypes(found), []string{
		"created:-:1 Patient/b", "created:-:1 Patient/a", "updated:1:2 Patient/a", "removed:2:3x Patient/a",
	})
	checkAscending(t, found)
}

// testEventsRace shows that each version has its event, in the order of versions, if one record has
// concurrent writers.
func testEventsRace(t *testing.T, open Open) {
	s, other := open(t)
	_ = events(t, s)
	write(t, s, withEvent(put("rex", body(0))))
	const writers, each = 8, 5
	errs := race(writers, []store.Store{s, other}, func(i int, s store.Store) error {
		for n := range each {
			if _, err := s.Write(t.Context(), []store.Op{withEvent(put("rex", body(1+i*each+n)))}); err != nil {
				return err
			}
		}
		return nil
	})
	same(t, "writers that succeeded", winners(t, errs, func(error) bool { return false }), writers)
	want := []string{"created:-:1 Patient/rex"}
	for n := 1; n <= writers*each; n++ {
		want = append(want, fmt.Sprintf("updated:%d:%d Patient/rex", n, n+1))
	}
	same(t, "events", eventTypes(events(t, other)), want)
}

// testSubjectRace writes different records with one subject concurrently. A reader checks that no
// event appears after one with a greater sequence. Each writer waits for the acknowledgment before
// its next event, so its own events must be in order.
func testSubjectRace(t *testing.T, open Open) {
	s, other := open(t)
	reader, ok := other.(EventReader)
	if !ok {
		t.Skip("the store does not offer its accepted events")
	}
	written := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		seen, greatest := map[string]bool{}, int64(0)
		for ended := false; !ended; {
			select {
			case <-written:
				ended = true
			default:
			}
			found, err := reader.AcceptedEvents(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			before := greatest
			for _, event := range found {
				if !seen[event.ID] && event.Sequence <= before {
					t.Errorf("event %s of sequence %d appeared after %d", event.ID, event.Sequence, before)
				}
				seen[event.ID], greatest = true, max(greatest, event.Sequence)
			}
		}
	})
	const writers, each = 16, 12
	errs := race(writers, []store.Store{s, other}, func(i int, s store.Store) error {
		for n := range each {
			id := fmt.Sprintf("%d-%d", i, n)
			op := put(id, body(1))
			op.Events = func(store.Change) []store.Event { return []store.Event{newEvent(id, "posted", "shared")} }
			if _, err := s.Write(t.Context(), []store.Op{op}); err != nil {
				return err
			}
		}
		return nil
	})
	close(written)
	reading.Wait()
	same(t, "writers that succeeded", winners(t, errs, func(error) bool { return false }), writers)
	found := events(t, s)
	same(t, "number of events", len(found), writers*each)
	checkAscending(t, found)
	next := map[string]int{}
	for _, event := range found {
		writer, n, _ := strings.Cut(event.ID, "-")
		same(t, "event of writer "+writer, n, strconv.Itoa(next[writer]))
		next[writer]++
	}
}

func testEventsOfPurge(t *testing.T, open Open) {
	s, other := open(t)
	_ = events(t, s)
	purge := store.Op{Kind: store.Purge, Key: key("rex")}
	write(t, s, withEvent(put("rex", body(1))))
	write(t, s, withEvent(put("rex", body(2))))
	write(t, other, withEvent(purge))
	write(t, s, withEvent(put("rex", body(3))))
	write(t, s, purge)
	found := events(t, other)
	same(t, "events", eventTypes(found), []string{
		"created:-:1 Patient/rex", "updated:1:2 Patient/rex", "removed:2:- Patient/rex", "created:-:1 Patient/rex",
	})
	checkAscending(t, found)
}

// testEnvelopes shows that the values that the engine inserts into envelopes are those that it
// stored.
func testEnvelopes(t *testing.T, open Open) {
	s, _ := open(t)
	_ = events(t, s)
	write(t, s, put("rex", body(1)))
	op := put("rex", body(2))
	made := newEvent("e1", "user.updated", "Patient/rex")
	made.Restricted = true
	plain := store.Event{ID: "e2", Type: "task.created", Envelope: store.Envelope{JSON: []byte(`{"ü":"<&>\u00fc","sequence": }`), SequenceOffset: 29}}
	op.Events = func(store.Change) []store.Event { return []store.Event{made, plain} }
	updated := write(t, s, op).Record
	found := events(t, s)
	if len(found) != 2 {
		t.Fatalf("got %d events, want 2", len(found))
	}
	same(t, "first event", found[0], store.AcceptedEvent{
		Sequence: found[0].Sequence, Accepted: updated.Updated, ID: "e1", Type: "user.updated", Subject: "Patient/rex", Targets: []string{"one", "two"},
		Restricted: true, Envelope: made.Envelope.Fill(found[0].Sequence, 2, updated.Updated),
	})
	same(t, "second event", found[1], store.AcceptedEvent{
		Sequence: found[1].Sequence, Accepted: updated.Updated, ID: "e2", Type: "task.created",
		Envelope: []byte(fmt.Sprintf(`{"ü":"<&>\u00fc","sequence":%d }`, found[1].Sequence)),
	})
	same(t, "envelopes read again", events(t, s), found)
	if found[0].Accepted.Sub(found[0].Accepted.Truncate(time.Millisecond)) != 0 {
		t.Errorf("the event was accepted at %v, want whole milliseconds", found[0].Accepted)
	}
}

func testManyEvents(t *testing.T, open Open) {
	s, other := open(t)
	_ = events(t, s)
	const most = 500
	op := put("rex", body(1))
	op.Events = func(store.Change) []store.Event {
		var all []store.Event
		for n := range most {
			all = append(all, newEvent(fmt.Sprintf("event-%d", n), "posted", fmt.Sprintf("subject-%d", n)))
		}
		return all
	}
	write(t, s, op)
	found := events(t, other)
	if len(found) != most {
		t.Fatalf("got %d events, want %d", len(found), most)
	}
	for n, event := range found {
		same(t, "id of an event", event.ID, fmt.Sprintf("event-%d", n))
	}
	checkAscending(t, found)
}
