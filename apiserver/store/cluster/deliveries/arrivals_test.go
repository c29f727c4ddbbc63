package deliveries

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

// TestNoteEmpty shows that a queue forgets a Record when its events were removed and the watch has reported that, whichever
// comes first, and that reports from before its newest events change nothing.
func TestNoteEmpty(t *testing.T) {
	const name = "patient.rex"
	at := func(resourceVersion string) *recordsv1.Record {
		return &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
	}
	type kept struct{ Arrived, Held bool }
	for of, test := range map[string]struct {
		arrived *recordsv1.Record
		held    *heldRecord
		change  func(q *queue)
		want    kept
	}{
		"removed, then reported":     {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.noteEmpty(name, "6") }, kept{}},
		"both while a list is read":  {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.listing = true; q.noteEmpty(name, "6") }, kept{Held: true}},
		"both, then the list ends":   {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.listing = true; q.noteEmpty(name, "6"); q.endListing() }, kept{}},
		"reported for earlier ones":  {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.noteEmpty(name, "4") }, kept{Held: true}},
		"reported, not yet removed":  {nil, &heldRecord{record: at("5"), removing: true}, func(q *queue) { q.noteEmpty(name, "6") }, kept{Held: true}},
		"reported, then removed":     {nil, &heldRecord{record: at("5"), last: 1, removing: true}, func(q *queue) { q.noteEmpty(name, "6"); q.noteRemoved(name, q.heldRecords[name], 1) }, kept{}},
		"removed, not yet reported":  {nil, &heldRecord{record: at("5"), last: 1, removing: true}, func(q *queue) { q.noteRemoved(name, q.heldRecords[name], 1) }, kept{Held: true}},
		"arrived, then gone":         {at("5"), nil, func(q *queue) { q.noteEmpty(name, "6") }, kept{}},
		"gone, then arrived again":   {at("7"), nil, func(q *queue) { q.noteEmpty(name, "6") }, kept{Arrived: true}},
		"missing in a later list":    {at("5"), &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.replace(nil, "6") }, kept{}},
		"missing in an earlier list": {at("7"), &heldRecord{record: at("7"), removed: true}, func(q *queue) { q.replace(nil, "6") }, kept{true, true}},
		"in a later list":            {at("5"), &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.replace(map[string]*recordsv1.Record{name: at("5")}, "6") }, kept{true, true}},
	} {
		q := newQueue(nil, "clinic", nil)
		if test.arrived != nil {
			q.arrived[name] = test.arrived
		}
		if test.held != nil {
			q.heldRecords[name] = test.held
		}
		test.change(q)
		if diff := cmp.Diff(test.want, kept{q.arrived[name] != nil, q.heldRecords[name] != nil}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
}

// TestReplaceAtOnce shows that syncLoop gets all Records of a list together: a list is not in the order of events, so
// a part of it may have an event without an earlier one of its subject.
func TestReplaceAtOnce(t *testing.T) {
	const namespace, records = "clinic", 10_000
	r := &Runner{options: Options{Shards: 1}, owned: map[int]*shard{0: {queues: map[string]*queue{}}}}
	q := newQueue(r, namespace, nil)
	r.owned[0].queues[namespace] = q
	var list []any
	for n := range records {
		list = append(list, &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("event.", n), Namespace: namespace, ResourceVersion: "5"}})
	}
	first := make(chan int, 1)
	go func() {
		<-q.wakeSync
		q.mu.Lock()
		defer q.mu.Unlock()
		first <- len(q.arrived)
	}()
	if err := (recordFeed{r}).Replace(list, "6"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-first:
		if got != records {
			t.Errorf("syncLoop got %d of %d records of a list", got, records)
		}
	case <-time.After(time.Minute):
		t.Error("syncLoop was not woken")
	}
}

// TestLatestStateIsKept shows that a Record waits for the next pass in its latest known state, in whatever order
// states come from the watch and from the pass before.
func TestLatestStateIsKept(t *testing.T) {
	at := func(resourceVersion string) *recordsv1.Record {
		return &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: "patient.rex", ResourceVersion: resourceVersion}}
	}
	for of, test := range map[string]struct {
		change func(q *queue)
		want   string
	}{
		"put back, then an earlier state arrives": {func(q *queue) { q.putBack(at("170")); q.arrive(at("155")) }, "170"},
		"an earlier state arrives, then put back": {func(q *queue) { q.arrive(at("155")); q.putBack(at("170")) }, "170"},
		"put back, then a later list": {func(q *queue) {
			q.putBack(at("155"))
			q.replace(map[string]*recordsv1.Record{"patient.rex": at("170")}, "171")
		}, "170"},
		"reported empty, then put back": {func(q *queue) { q.noteEmpty("patient.rex", "171"); q.putBack(at("170")) }, ""},
		"put back with events since":    {func(q *queue) { q.noteEmpty("patient.rex", "160"); q.putBack(at("170")) }, "170"},
	} {
		q := newQueue(nil, "clinic", nil)
		test.change(q)
		got := ""
		if record := q.arrived["patient.rex"]; record != nil {
			got = record.ResourceVersion
		}
		if got != test.want {
			t.Errorf("%s: got resourceVersion %q, want %q", of, got, test.want)
		}
	}
}

// TestOpenForAll shows that a site that opens while a queue relays Records is closed for all of them.
func TestOpenForAll(t *testing.T) {
	asked := 0
	q := newQueue(&Runner{options: Options{Open: func(string, string) (Target, bool) {
		asked++
		return nil, asked > 1
	}}}, "clinic", nil)
	records := []*recordsv1.Record{
		{ObjectMeta: metav1.ObjectMeta{Name: "event.1", ResourceVersion: "5"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "event.2", ResourceVersion: "6"}},
	}
	q.caughtUp[""] = true
	if err := q.relayEach(t.Context(), records, map[string]bool{}); err != nil {
		t.Fatal(err)
	}
	if len(q.arrived) != len(records) {
		t.Errorf("%d of %d records wait for the site", len(q.arrived), len(records))
	}
}
