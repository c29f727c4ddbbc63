package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// telling adds an event to an operation. The id of the event contains the version.
func telling(op store.Op) store.Op {
	op.Events = func(c store.Change) []store.Event {
		id := "purged"
		if c.After != nil {
			id = fmt.Sprint("v", c.After.Version)
		}
		return []store.Event{event(id, "Patient/rex")}
	}
	return op
}

func event(id, subject string) store.Event {
	text := `{"id":"` + id + `","timestamp":"","version":,"sequence":,"data":{}}`
	return store.Event{
		ID: id, Type: "patient.updated", Subject: subject, Targets: []string{"hook"},
		Envelope: store.Envelope{
			JSON: []byte(text), TimeOffsets: []int{strings.Index(text, `"timestamp":"`) + len(`"timestamp":"`)},
			VersionOffset:  strings.Index(text, `"version":`) + len(`"version":`),
			SequenceOffset: strings.Index(text, `"sequence":`) + len(`"sequence":`),
		},
	}
}

// pending returns the events in the Records of the site, by record.
func pending(t *testing.T, namespace string) map[string][]store.AcceptedEvent {
	t.Helper()
	found, err := pendingEvents(t.Context(), objects(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func pendingEvents(ctx context.Context, reader client.Client, namespace string) (map[string][]store.AcceptedEvent, error) {
	var list recordsv1.RecordList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"spec.hasEvents": "true"}); err != nil {
		return nil, err
	}
	found := map[string][]store.AcceptedEvent{}
	for _, r := range list.Items {
		for i := range r.Spec.Events {
			e, err := deliveries.Accept(&r.Spec.Events[i], r.ResourceVersion)
			if err != nil {
				return nil, err
			}
			found[r.Spec.Type+"/"+r.Spec.ID] = append(found[r.Spec.Type+"/"+r.Spec.ID], e)
		}
	}
	return found, nil
}

func ids(events []store.AcceptedEvent) []string {
	var found []string
	for _, e := range events {
		found = append(found, e.ID)
	}
	return found
}

func checkRising(t *testing.T, events []store.AcceptedEvent) {
	t.Helper()
	for i := range events {
		if i > 0 && events[i].Sequence <= events[i-1].Sequence {
			t.Errorf("%s has sequence %d after %d of %s", events[i].ID, events[i].Sequence, events[i-1].Sequence, events[i-1].ID)
		}
	}
}

// TestEventsOfWrites tests the events of a record from its creation to the purge and after it.
func TestEventsOfWrites(t *testing.T) {
	namespace, key := newSite(t)
	site := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	accepted := map[string]int64{}
	step := func(op store.Op) store.Result {
		result := mustWrite(t, site, op)
		found := pending(t, namespace)
		for i, e := range found["Patient/rex"] {
			id := fmt.Sprint(i, " ", e.ID)
			if known, ok := accepted[id]; ok && known != e.Sequence {
				t.Errorf("the sequence of %s changed from %d to %d", id, known, e.Sequence)
			}
			accepted[id] = e.Sequence
		}
		return result
	}
	created := step(telling(rex(1)))
	revision, err := strconv.ParseInt(created.Record.Revision, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if accepted["0 v1"] != revision*deliveries.MaxPerWrite {
		t.Errorf("sequence %d of the write with resourceVersion %d", accepted["0 v1"], revision)
	}
	step(telling(rex(1))) // unchanged
	annotated := telling(rex(1))
	annotated.Metadata = []byte(`{"labels":{"a":"b"}}`)
	step(annotated)
	step(telling(rex(2)))
	step(rex(3))
	step(telling(store.Op{Kind: store.Delete, Key: rex(0).Key, Method: store.MethodDelete}))
	step(telling(rex(4)))
	step(telling(store.Op{Kind: store.Purge, Key: rex(0).Key}))
	if seen := observe(t, site); !cmp.Equal(seen, observed{}) {
		t.Errorf("seen of a purged record: %+v", seen)
	}
	again := telling(rex(5))
	again.Claims = []store.Claim{{Line: "line"}}
	if r := step(again); r.Outcome != store.Created || r.Record.Version != 1 {
		t.Errorf("a namesake of a purged record: %+v", r)
	}
	step(telling(rex(6)))
	found := pending(t, namespace)
	events := found["Patient/rex"]
	want := []string{"v1", "v2", "v4", "v5", "purged", "v1", "v2"}
	if diff := cmp.Diff(want, ids(events)); diff != "" {
		t.Errorf("pending events (-want +got):\n%s", diff)
	}
	checkRising(t, events)
	record := mustGet(t, site)
	last := events[len(events)-1]
	envelope := fmt.Sprintf(`{"id":"v2","timestamp":"%s","version":2,"sequence":%d,"data":{}}`, record.Updated.Format(store.EnvelopeTime), last.Sequence)
	if string(last.Envelope) != envelope || !last.Accepted.Equal(record.Updated) {
		t.Errorf("envelope %s accepted %s, want %s", last.Envelope, last.Accepted, envelope)
	}
	if seen := observe(t, site); len(seen.Versions) != 2 {
		t.Errorf("the history of the new record is %v", seen.Versions)
	}
}

func mustGet(t *testing.T, s store.Store) store.Record {
	t.Helper()
	record, err := s.Get(t.Context(), rex(0).Key)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// checkEvents compares the events of a record with the state that a reader saw: the earlier events,
// and one more if the change happened. The next write keeps them.
func checkEvents(t *testing.T, step int64, other store.Store, namespace string, earlier []string, changed bool, kind store.OpKind, version int64) {
	t.Helper()
	want := earlier
	if changed {
		id := "purged"
		if kind != store.Purge {
			id = fmt.Sprint("v", version)
		}
		want = append(slices.Clone(earlier), id)
	}
	mustWrite(t, other, rex(76))
	found := pending(t, namespace)
	events := found["Patient/rex"]
	if diff := cmp.Diff(want, ids(events)); diff != "" {
		t.Errorf("step %d: events of what is there (-want +got):\n%s", step, diff)
	}
	checkRising(t, events)
}

// TestEventsOfConcurrentWriters shows that every acknowledged write has its event, in the order of
// versions. This also holds for several records with one subject.
func TestEventsOfConcurrentWriters(t *testing.T) {
	namespace, key := newSite(t)
	var group sync.WaitGroup
	const writers, each = 4, 4
	replicas := []*cluster.Cluster{newEngine(t, cluster.Options{}), newEngine(t, cluster.Options{})}
	for w := range writers {
		site := replicas[w%len(replicas)].Open(namespace, key, cluster.DefaultLimits)
		group.Go(func() {
			for i := range each {
				op := rex(1000*w + i)
				op.Events = func(c store.Change) []store.Event {
					return []store.Event{event(fmt.Sprint(c.After.Version), "Patient/rex"), event(fmt.Sprint(c.After.Version, "b"), "Patient/rex")}
				}
				if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	group.Wait()
	found := pending(t, namespace)
	events := found["Patient/rex"]
	checkRising(t, events)
	var want []string
	for v := range writers * each {
		want = append(want, fmt.Sprint(v+1), fmt.Sprint(v+1, "b"))
	}
	if diff := cmp.Diff(want, ids(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestFenceKeepsSequence shows that an event keeps its sequence when its Record is changed by
// fencing off a stopped writer.
func TestFenceKeepsSequence(t *testing.T) {
	namespace, key := newSite(t)
	crashing := newCrashingSite(t, namespace, key)
	mustWrite(t, crashing, telling(rex(1)))
	if !crashing.write(t, claimed(rex(2), "line"), 1) {
		t.Fatal("the writer did not die")
	}
	before := pending(t, namespace)
	rival := newEngine(t, cluster.Options{Now: func() time.Time { return time.Now().Add(time.Minute) }}).Open(namespace, key, cluster.DefaultLimits)
	bella := claimed(rex(2), "line")
	bella.Key.ID = "bella"
	mustWrite(t, rival, bella)
	if diff := cmp.Diff(before, pending(t, namespace)); diff != "" {
		t.Errorf("events (-before +after):\n%s", diff)
	}
}

// TestEventLimits shows which writes exceed the limits of events, and that they change nothing.
func TestEventLimits(t *testing.T) {
	namespace, key := newSite(t)
	limits := cluster.DefaultLimits
	limits.MaxPending = 3
	site := newEngine(t, cluster.Options{}).Open(namespace, key, limits)
	for i := range 3 {
		mustWrite(t, site, telling(rex(i)))
	}
	refused(t, site, telling(rex(4)), store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries, Max: 3})
	mustWrite(t, site, rex(4)) // without an event
	mustWrite(t, site, telling(rex(4)))
	if got := mustGet(t, site).Version; got != 4 {
		t.Errorf("version %d, want 4: what is refused is not written", got)
	}

	mustWrite(t, site, telling(store.Op{Kind: store.Delete, Key: rex(0).Key})) // above the limit
	mustWrite(t, site, telling(store.Op{Kind: store.Purge, Key: rex(0).Key}))

	wide := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	huge := func(n, bytes int) store.Op {
		op := rex(n)
		op.Events = func(store.Change) []store.Event {
			e := event(fmt.Sprint(n), "")
			e.Envelope.JSON = append(e.Envelope.JSON, noise("x", bytes).Body.JSON...)
			return []store.Event{e}
		}
		return op
	}
	refused(t, wide, huge(5, 400<<10), store.LimitError{Scope: store.LimitRecord, What: "bytes of events", Max: deliveries.MaxEventBytes})
	mustWrite(t, wide, huge(6, 200<<10))
	full := store.LimitError{Scope: store.LimitRecord, What: store.PendingEventBytes, Max: deliveries.MaxEventBytes}
	refused(t, wide, huge(7, 200<<10), full)
	if !full.IsBacklog() {
		t.Error("a write that is refused until events are delivered may be repeated")
	}
	_, err := wide.Write(t.Context(), []store.Op{huge(8, 1)})
	if err != nil && !errors.As(err, new(*store.LimitError)) {
		t.Fatal(err)
	}
}

// TestPostedEventsAreNoRecords shows that Records of type Event do not count towards the limit of
// records.
func TestPostedEventsAreNoRecords(t *testing.T) {
	namespace, key := newSite(t)
	limits := cluster.DefaultLimits
	limits.MaxRecords = 1
	site := newEngine(t, cluster.Options{}).Open(namespace, key, limits)
	mustWrite(t, site, rex(1))
	for i := range 3 {
		op := telling(rex(i))
		op.Key = store.Key{Type: deliveries.EventType, ID: fmt.Sprint(i)}
		mustWrite(t, site, op)
	}
	if got := site.Stats().Records; got != 1 {
		t.Errorf("%d records, want 1", got)
	}
}
