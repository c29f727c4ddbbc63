package audit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestRecords shows that an entry has each record once, few or many, whatever the case of its id.
func TestRecords(t *testing.T) {
	patient := func(id string) store.Key { return store.Key{Type: "Patient", ID: id} }
	for _, n := range []int{1, fewRecords - 1, fewRecords, fewRecords + 1, 3 * fewRecords} {
		recorder := &Recorder{}
		recorder.Interaction("read", Read, patient("Rex"))
		recorder.AddRead(patient("REX"), store.Key{Type: "Person", ID: "rex"}, store.Key{Type: "Patient"}, store.Key{Type: "Patien", ID: "Arex"})
		want := []string{"Patient/Rex", "Person/rex", "Patien/Arex"}
		for i := range n {
			recorder.AddRead(patient(fmt.Sprintf("0199-a%d", i)), patient(fmt.Sprintf("0199-A%d", i)))
			want = append(want, fmt.Sprintf("Patient/0199-a%d", i))
		}
		records := recorder.records()
		if diff := cmp.Diff(want, slices.Collect(records.All())); diff != "" {
			t.Errorf("%d records (-want +got):\n%s", n, diff)
		}
	}
}

// TestRecordsOfPages shows that a record of several pages is in the entry once.
func TestRecordsOfPages(t *testing.T) {
	page := func(ids ...string) (records []store.Record) {
		for _, id := range ids {
			records = append(records, store.Record{Key: store.Key{Type: "Patient", ID: id}})
		}
		return records
	}
	for name, look := range map[string]func(r *Recorder){
		"two pages":            func(r *Recorder) { r.addReadPage(page("a"), nil, true); r.addReadPage(page("A", "b"), nil, true) },
		"a page and a record":  func(r *Recorder) { r.addReadPage(page("a", "b"), nil, true); r.AddRead(page("A")[0].Key) },
		"a record and a page":  func(r *Recorder) { r.AddRead(page("a")[0].Key); r.addReadPage(page("A", "b"), nil, true) },
		"included":             func(r *Recorder) { r.addReadPage(page("a", "b"), page("A"), true) },
		"several versions":     func(r *Recorder) { r.addReadPage(page("a", "A", "b"), nil, false) },
		"a page of a record's": func(r *Recorder) { r.entry.Records = RecordsOf("Patient/a"); r.addReadPage(page("A", "b"), nil, true) },
	} {
		recorder := &Recorder{}
		look(recorder)
		if diff := cmp.Diff(RecordsOf("Patient/a", "Patient/b"), recorder.records()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkRequest measures what the audit log adds to a read and to a page of 20, without storage.
func BenchmarkRequest(b *testing.B) {
	caller := access.Caller{Name: "system:serviceaccount:oak:alice"}
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("%d records", n), func(b *testing.B) {
			page := make([]store.Record, n)
			for i := range page {
				page[i].Key = store.Key{Type: "Patient", ID: fmt.Sprintf("019ab1c2-7d3e-7000-8000-%012d", i)}
			}
			r := httptest.NewRequest(http.MethodGet, "/site/oak/fhir/patient", nil)
			now, line := time.Now(), []byte(nil)
			b.ReportAllocs()
			for b.Loop() {
				recorder := newRecorder(r)
				recorder.begin(nil, "fhir", http.MethodGet)
				recorder.At(Sink{ID: "oak"})
				recorder.Caller(caller)
				recorder.Interaction("search-type", Execute, store.Key{Type: "Patient"})
				recorder.addReadPage(page, nil, true)
				recorder.Identify("019ab1c2-7d3e-7000-8000-000000000000", "")
				entries, _ := recorder.finish(200, now)
				line = entries[0].AppendJSON(line[:0])
			}
		})
	}
}
