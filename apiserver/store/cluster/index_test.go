package cluster

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestIndexReadsAStateOnce shows that a state that the index gets from the writer and from the
// watch is parsed once. Older states are not parsed, nor are later ones with the same body.
func TestIndexReadsAStateOnce(t *testing.T) {
	reads := 0
	x := newIndex(extracting{extract: func(string) []store.IndexValue { reads++; return nil }})
	state := func(version, body string) *recordsv1.Record {
		return &recordsv1.Record{
			ObjectMeta: metav1.ObjectMeta{Name: "patient.rex", UID: "u", ResourceVersion: version},
			Spec:       recordsv1.RecordSpec{Type: "Patient", ID: "rex", Body: body},
		}
	}
	for _, step := range []struct {
		version, body string
		reads         int
	}{{"10", "{}", 1}, {"10", "{}", 1}, {"12", "{ }", 2}, {"11", "{}", 2}, {"12", "{ }", 2}, {"13", "{ }", 2}} {
		x.apply(state(step.version, step.body))
		if reads != step.reads {
			t.Errorf("after resourceVersion %s the body was read %d times, want %d", step.version, reads, step.reads)
		}
	}
	x.remove("patient.rex", "u", store.Key{Type: "Patient", ID: "rex"}, 14, x.lookup("patient.rex").CreationTimestamp.Time)
	x.apply(state("14", "{}"))
	if reads != 2 {
		t.Errorf("a removed record was read again")
	}
}

// TestEmptyIndexIsReleased shows that the index of a site whose records were removed keeps nothing of them.
func TestEmptyIndexIsReleased(t *testing.T) {
	x := newIndex(extracting{extract: func(string) []store.IndexValue { return nil }})
	for _, record := range []struct{ recordType, uid string }{{"Patient", "u1"}, {"Patient", "u2"}, {"Slot", "u3"}} {
		x.apply(&recordsv1.Record{
			ObjectMeta: metav1.ObjectMeta{Name: record.uid, UID: types.UID(record.uid), ResourceVersion: "10"},
			Spec:       recordsv1.RecordSpec{Type: record.recordType, ID: record.uid, Body: "{}"},
		})
	}
	maps := func() [3]uintptr {
		return [3]uintptr{reflect.ValueOf(x.names).Pointer(), reflect.ValueOf(x.withEvents).Pointer(), reflect.ValueOf(x.removed).Pointer()}
	}
	before := maps()
	removed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		uid   string
		types []string
	}{{"u1", []string{"Patient", "Slot"}}, {"u2", []string{"Slot"}}, {"u3", nil}} {
		x.remove(step.uid, types.UID(step.uid), store.Key{}, 11, removed)
		if diff := cmp.Diff(step.types, x.typeNames()); diff != "" {
			t.Errorf("types after the removal of %s (-want +got):\n%s", step.uid, diff)
		}
	}
	x.forgetRemoved(removed.Add(time.Second), 11)
	for i, after := range maps() {
		if after == before[i] {
			t.Errorf("map %d is still the one that had the records", i)
		}
	}
	if x.usage() != (usage{}) {
		t.Errorf("usage %+v", x.usage())
	}
}

// extracting is an Extractor of the values that extract returns for a type.
type extracting struct {
	store.Extractor
	extract func(recordType string) []store.IndexValue
}

func (x extracting) Extract(recordType string, _ []byte) []store.IndexValue {
	return x.extract(recordType)
}
func (extracting) Labels(string, []store.IndexValue) (none store.Labels) { return none }
