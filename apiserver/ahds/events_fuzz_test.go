package ahds

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
)

// fuzzedSource sends all events to one webhook, by the privacy rules of FHIR resources.
func fuzzedSource() *events.Source {
	rules := &privacy.Rules{}
	return &events.Source{
		SiteID:  "demo",
		KindOf:  func(string) *events.Kind { return nil },
		Targets: func(string) ([]string, error) { return []string{"hook"}, nil },
		Restricts: func(recordType string, body store.Body) bool {
			return rules.Restricts(recordType, fhir.LabelsOf(recordType, body))
		},
	}
}

// FuzzEvent sends any body in each form of events: what is accepted makes an envelope that is
// JSON, of a type that there is, and is found to be the same when it is sent again.
func FuzzEvent(f *testing.F) {
	for _, body := range []string{
		`{"type":"user.created","data":{}}`, `[{"eventId":"a","type":"user.created","data":{"a":[1.0]}},{"eventId":"a","type":"user.created","data":{"a":[1.0]}}]`,
		`{"type":"user.updated","subject":"Practitioner/1","occurredAt":"2031-03-01T09:30:00+05:45","changedFields":["a","\u0000"],"data":{"resourceType":"Practitioner","meta":{"security":[{"code":"R"}]}}}`,
		`{"type":"user.created","data":{"resourceType":"Device","meta":[],"patient":{"reference":"Patient/1"}}}`, `{"type":"user.created","data":{"resourceType":"Device","patient":[{"reference":7}],"meta":{"tag":{}}}}`,
		`{"specversion":"1.0","id":"1","source":"/a","type":"user.created","time":"2031-03-01T09:30:00Z","subject":"x","changedfields":"a, b","datacontenttype":"application/json","data":{"a":1}}`,
		`[{"specversion":"1.0","id":"1","source":"urn:a:b","type":"user.created","data":{"a":1}},{"data":{},"type":"user.created","source":"urn:a:b","id":"1","specversion":"1.0"}]`,
		`{"specversion":"0.3","id":"1","source":"/a","type":"user.created","data":{}}`, `{"specversion":"1.0","id":"1","source":"/a","type":"user.created","data_base64":"e30="}`,
		`{"":1,"specversion":"1.0"}`, `[`, `[]`, `[[]]`, `{}`, "", `{"data":{},"x":{"a":{}},"specversion":"1.0","id":" ","source":"","type":""}`, `{"specversion":"1.0","id":"1","source":"/a","type":"user.created","data":7}`,
	} {
		for form := range uint8(4) {
			f.Add(form, []byte(body))
		}
	}
	handler, records := fuzzed(f)
	f.Fuzz(func(t *testing.T, form uint8, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/site/demo/ahds/v1/event", strings.NewReader(string(body)))
		switch form % 4 {
		case 1:
			r.Header.Set("Content-Type", event.TypeCloudEvent)
		case 2:
			r.Header.Set("Content-Type", event.TypeCloudEventBatch)
		case 3:
			for name, value := range map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/a", "ce-type": "user.created", "ce-subject": "a%20b"} {
				r.Header.Set(name, value)
			}
		}
		records.written = store.Op{}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		checkAnswer(t, string(body), w)
		if w.Code != http.StatusAccepted {
			if w.Code < http.StatusBadRequest || records.written.Kind != 0 {
				t.Fatalf("%s: status %d, written %v", body, w.Code, records.written)
			}
			return
		}
		if _, err := event.MemoryOf(records.written.Body); err != nil {
			t.Fatalf("%s is stored as %s: %v", body, records.written.Body.JSON, err)
		}
		for _, made := range records.written.Events(store.Change{}) {
			var envelope struct{ ID, Type, SiteID string }
			text := made.Envelope.Fill(1, 1, time.Unix(0, 0))
			if err := json.Unmarshal(text, &envelope); err != nil || envelope.ID != made.ID || envelope.Type != made.Type || envelope.SiteID != "demo" {
				t.Fatalf("%s makes %s: %v", body, text, err)
			}
			if _, known := events.TypeOf(made.Type); !known || made.ID == "" {
				t.Fatalf("%s makes an event of the type %q with the id %q", body, made.Type, made.ID)
			}
		}
	})
}
