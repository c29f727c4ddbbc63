package deliveries

import (
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
		held    *holding
		change  func(q *queue)
		want    left
	}{
		"removed, then reported":     {nil, &holding{record: at("5"), takenOut: true}, func(q *queue) { q.leave(name, "6") }, left{}},
		"both while a list is read":  {nil, &holding{record: at("5"), takenOut: true}, func(q *queue) { q.listing = true; q.leave(name, "6") }, left{Held: true}},
		"both, then the list ends":   {nil, &holding{record: at("5"), takenOut: true}, func(q *queue) { q.listing = true; q.leave(name, "6"); q.endListing() }, left{}},
		"reported for earlier ones":  {nil, &holding{record: at("5"), takenOut: true}, func(q *queue) { q.leave(name, "4") }, left{Held: true}},
		"reported, not yet removed":  {nil, &holding{record: at("5"), removing: true}, func(q *queue) { q.leave(name, "6") }, left{Held: true}},
		"reported, then removed":     {nil, &holding{record: at("5"), last: 1, removing: true}, func(q *queue) { q.leave(name, "6"); q.tookOut(name, q.holdings[name], 1) }, left{}},
		"removed, not yet reported":  {nil, &holding{record: at("5"), last: 1, removing: true}, func(q *queue) { q.tookOut(name, q.holdings[name], 1) }, left{Held: true}},
		"arrived, then gone":         {at("5"), nil, func(q *queue) { q.leave(name, "6") }, left{}},
		"gone, then arrived again":   {at("7"), nil, func(q *queue) { q.leave(name, "6") }, left{Arrived: true}},
		"missing in a later list":    {at("5"), &holding{record: at("5"), takenOut: true}, func(q *queue) { q.leaveExcept(nil, "6") }, left{}},
		"missing in an earlier list": {at("7"), &holding{record: at("7"), takenOut: true}, func(q *queue) { q.leaveExcept(nil, "6") }, left{true, true}},
		"in a later list":            {at("5"), &holding{record: at("5"), takenOut: true}, func(q *queue) { q.leaveExcept(map[string]bool{name: true}, "6") }, left{true, true}},
	} {
		q := newQueue(nil, "clinic")
		if test.arrived != nil {
			q.arrived[name] = test.arrived
		}
		if test.held != nil {
			q.holdings[name] = test.held
		}
		test.change(q)
		if diff := cmp.Diff(test.want, left{q.arrived[name] != nil, q.holdings[name] != nil}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
}
