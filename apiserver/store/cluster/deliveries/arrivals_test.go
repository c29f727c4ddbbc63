package deliveries

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

// TestLeave shows that a queue forgets a Record when its events were removed and the watch has reported that, whichever
// comes first, and that reports from before its newest events change nothing.
func TestLeave(t *testing.T) {
	const name = "patient.rex"
	at := func(resourceVersion string) *recordsv1.Record {
		return &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
	}
	type left struct{ Arrived, Held bool }
	for of, test := range map[string]struct {
		arrived *recordsv1.Record
		held    *heldRecord
		change  func(q *queue)
		want    left
	}{
		"removed, then reported":     {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.noteEmpty(name, "6") }, left{}},
		"both while a list is read":  {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.listing = true; q.noteEmpty(name, "6") }, left{Held: true}},
		"both, then the list ends":   {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.listing = true; q.noteEmpty(name, "6"); q.endListing() }, left{}},
		"reported for earlier ones":  {nil, &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.noteEmpty(name, "4") }, left{Held: true}},
		"reported, not yet removed":  {nil, &heldRecord{record: at("5"), removing: true}, func(q *queue) { q.noteEmpty(name, "6") }, left{Held: true}},
		"reported, then removed":     {nil, &heldRecord{record: at("5"), last: 1, removing: true}, func(q *queue) { q.noteEmpty(name, "6"); q.noteRemoved(name, q.heldRecords[name], 1) }, left{}},
		"removed, not yet reported":  {nil, &heldRecord{record: at("5"), last: 1, removing: true}, func(q *queue) { q.noteRemoved(name, q.heldRecords[name], 1) }, left{Held: true}},
		"arrived, then gone":         {at("5"), nil, func(q *queue) { q.noteEmpty(name, "6") }, left{}},
		"gone, then arrived again":   {at("7"), nil, func(q *queue) { q.noteEmpty(name, "6") }, left{Arrived: true}},
		"missing in a later list":    {at("5"), &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.replace(nil, "6") }, left{}},
		"missing in an earlier list": {at("7"), &heldRecord{record: at("7"), removed: true}, func(q *queue) { q.replace(nil, "6") }, left{true, true}},
		"in a later list":            {at("5"), &heldRecord{record: at("5"), removed: true}, func(q *queue) { q.replace(map[string]*recordsv1.Record{name: at("5")}, "6") }, left{true, true}},
	} {
		q := newQueue(nil, "clinic", nil)
		if test.arrived != nil {
			q.arrived[name] = test.arrived
		}
		if test.held != nil {
			q.heldRecords[name] = test.held
		}
		test.change(q)
		if diff := cmp.Diff(test.want, left{q.arrived[name] != nil, q.heldRecords[name] != nil}); diff != "" {
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
	if got := <-first; got != records {
		t.Errorf("syncLoop got %d of %d records of a list", got, records)
	}
}

// TestOpenForAll shows that a site that opens while a queue takes Records in is closed for all of them.
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
