package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestIndexReadsAStateOnce shows that a write, which the index hears of from the writer
// and from the watch, is read once, and an older state never.
func TestIndexReadsAStateOnce(t *testing.T) {
	reads := 0
	x := newIndex(func(string, []byte) []store.Entry { reads++; return nil })
	state := func(version string) *recordsv1.Record {
		return &recordsv1.Record{
			ObjectMeta: metav1.ObjectMeta{Name: "patient.rex", UID: "u", ResourceVersion: version},
			Spec:       recordsv1.RecordSpec{Type: "Patient", ID: "rex", Body: "{}"},
		}
	}
	for _, step := range []struct {
		version string
		reads   int
	}{{"10", 1}, {"10", 1}, {"12", 2}, {"11", 2}, {"12", 2}} {
		x.apply(state(step.version))
		if reads != step.reads {
			t.Errorf("after resourceVersion %s the body was read %d times, want %d", step.version, reads, step.reads)
		}
	}
	x.remove("patient.rex", "u", x.lookup("patient.rex").CreationTimestamp.Time)
	x.apply(state("13"))
	if reads != 2 {
		t.Errorf("a removed record was read again")
	}
}
