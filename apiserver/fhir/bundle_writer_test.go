package fhir

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

var bundleTime = time.Date(2026, 3, 1, 10, 0, 0, 5_000_000, time.UTC)

// bundleRecord is a stored Patient with the id A and a number that must stay as
// it is written.
func bundleRecord(version int64, method store.Method) store.Record {
	const body = `{"resourceType":"Patient","id":"","meta":{}, "extension":[{"url":"u", "valueDecimal": 1.50}]}`
	return store.Record{
		Key: store.Key{Type: "Patient", ID: "A"}, Version: version, Method: method,
		Created: bundleTime, Updated: bundleTime.Add(time.Duration(version-1) * time.Second),
		Body: store.Body{JSON: []byte(body), IDOffset: 32, MetaOffset: 42},
	}
}

const (
	bundleVersion1 = `{"resourceType":"Patient","id":"A","meta":{"versionId":"1","lastUpdated":"2026-03-01T10:00:00.005Z"}, "extension":[{"url":"u", "valueDecimal": 1.50}]}`
	bundleVersion2 = `{"resourceType":"Patient","id":"A","meta":{"versionId":"2","lastUpdated":"2026-03-01T10:00:01.005Z"}, "extension":[{"url":"u", "valueDecimal": 1.50}]}`
)

func TestSearchBundle(t *testing.T) {
	b := newBundleWriter("searchset", 2, []link{{"self", "https://h/fhir/patient?a=b&c=d"}, {"next", "https://h/fhir/patient?e"}})
	r := &request{segment: "patient", site: Endpoint{BaseURL: "https://h/fhir"}}
	if err := b.addMatch(r, "match", bundleRecord(1, store.MethodPost), projection{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.addOutcome("https://host/errors", ignoredIssues([]string{"nme"})); err != nil {
		t.Fatal(err)
	}
	want := `{"resourceType":"Bundle","type":"searchset","total":2,"link":[` +
		`{"relation":"self","url":"https://h/fhir/patient?a=b&c=d"},{"relation":"next","url":"https://h/fhir/patient?e"}],"entry":[` +
		`{"fullUrl":"https://h/fhir/patient/A","resource":` + bundleVersion1 + `,"search":{"mode":"match"}},` +
		`{"resource":{"resourceType":"OperationOutcome","issue":[{"severity":"warning","code":"not-supported","details":{"coding":[{"system":"https://host/errors","code":"invalid_query"}],"text":"The query string is invalid."},` +
		`"diagnostics":"the unknown search parameter \"nme\" is ignored; correct its name or omit it"}]},"search":{"mode":"outcome"}}]}`
	if diff := cmp.Diff(want, string(b.finish())); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyBundle(t *testing.T) {
	got := newBundleWriter("searchset", store.UnknownTotal, []link{{"self", "u"}}).finish()
	want := `{"resourceType":"Bundle","type":"searchset","link":[{"relation":"self","url":"u"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryBundle(t *testing.T) {
	again := bundleRecord(1, store.MethodPut)
	deleted := store.Record{
		Key: again.Key, Version: 3, Method: store.MethodDelete, Deleted: true,
		Created: bundleTime, Updated: bundleTime,
	}
	const base, version = "https://h/fhir/patient/A", "https://h/fhir/patient/A/_history/"
	tests := map[string]struct {
		rec     store.Record
		dialect *dialect
		want    string
	}{
		"created by POST": {
			bundleRecord(1, store.MethodPost), contractDialect,
			`{"fullUrl":"` + base + `","resource":` + bundleVersion1 + `,"request":{"method":"POST","url":"patient"},` +
				`"response":{"status":"201 Created","location":"` + version + `1","etag":"W/\"1\"","lastModified":"2026-03-01T10:00:00.005Z"}}`,
		},
		"created by PUT": {
			again, contractDialect,
			`{"fullUrl":"` + base + `","resource":` + bundleVersion1 + `,"request":{"method":"PUT","url":"patient/A"},` +
				`"response":{"status":"201 Created","location":"` + version + `1","etag":"W/\"1\"","lastModified":"2026-03-01T10:00:00.005Z"}}`,
		},
		"updated": {
			bundleRecord(2, store.MethodPut), fhirDialect,
			`{"fullUrl":"` + base + `","resource":` + bundleVersion2 + `,"request":{"method":"PUT","url":"patient/A"},` +
				`"response":{"status":"200 OK","location":"` + version + `2","etag":"W/\"2\"","lastModified":"2026-03-01T10:00:01.005Z"}}`,
		},
		"patched, by the contract": {
			bundleRecord(2, store.MethodPatch), contractDialect,
			`{"fullUrl":"` + base + `","resource":` + bundleVersion2 + `,"request":{"method":"PUT","url":"patient/A"},` +
				`"response":{"status":"200 OK","location":"` + version + `2","etag":"W/\"2\"","lastModified":"2026-03-01T10:00:01.005Z"}}`,
		},
		"patched, by FHIR": {
			bundleRecord(2, store.MethodPatch), fhirDialect,
			`{"fullUrl":"` + base + `","resource":` + bundleVersion2 + `,"request":{"method":"PATCH","url":"patient/A"},` +
				`"response":{"status":"200 OK","location":"` + version + `2","etag":"W/\"2\"","lastModified":"2026-03-01T10:00:01.005Z"}}`,
		},
		"deleted": {
			deleted, fhirDialect,
			`{"fullUrl":"` + base + `","request":{"method":"DELETE","url":"patient/A"},` +
				`"response":{"status":"200 OK","location":"` + version + `3","etag":"W/\"3\"","lastModified":"2026-03-01T10:00:00.005Z"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &request{dialect: test.dialect, segment: "patient", site: Endpoint{BaseURL: "https://h/fhir"}}
			b := newBundleWriter("history", 1, []link{{"self", "u"}})
			if err := b.addVersion(r, test.rec, projection{}); err != nil {
				t.Fatal(err)
			}
			want := `{"resourceType":"Bundle","type":"history","total":1,"link":[{"relation":"self","url":"u"}],"entry":[` + test.want + `]}`
			if diff := cmp.Diff(want, string(b.finish())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFailedEntryResponse has the responses to failed entries. The one to a HEAD has no body, so the
// entry has no outcome.
func TestFailedEntryResponse(t *testing.T) {
	const notFound = `{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":"not-found","details":{"coding":[{"system":"/errors","code":"resource_not_found"}],"text":"There is no such record."},` +
		`"diagnostics":"the record does not exist, or the caller may not read it"}]}`
	tests := map[string]string{
		http.MethodGet:  `{"status":"404 Not Found","outcome":` + notFound + `}`,
		http.MethodHead: `{"status":"404 Not Found"}`,
	}
	for method, want := range tests {
		t.Run(method, func(t *testing.T) {
			e := &bundleEntry{request: &request{Request: httptest.NewRequest(method, "/site/-/fhir/Patient/rex", nil), dialect: fhirDialect}}
			e.fail(&handler{}, store.ErrNotFound)
			b := newBundleWriter("batch-response", store.UnknownTotal, nil)
			b.addResponse(e)
			if diff := cmp.Diff(`{"resourceType":"Bundle","type":"batch-response","entry":[{"response":`+want+`}]}`, string(b.finish())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkSearchBundle(b *testing.B) {
	rec := bundleRecord(1, store.MethodPost)
	r := &request{segment: "patient", site: Endpoint{BaseURL: "https://h/fhir"}}
	b.ReportAllocs()
	for b.Loop() {
		bundle := newBundleWriter("searchset", 20, []link{{"self", "https://h/fhir/patient"}})
		for range 20 {
			if err := bundle.addMatch(r, "match", rec, projection{}, nil); err != nil {
				b.Fatal(err)
			}
		}
		bundle.finish()
	}
}

func TestBundleRecordIsAsTheReaderMakesIt(t *testing.T) {
	rec := bundleRecord(1, store.MethodPost)
	read, err := r4.Read([]byte(bundleVersion1), r4.Options{Type: "Patient"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec.Body, store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset}); diff != "" {
		t.Error(diff)
	}
}
