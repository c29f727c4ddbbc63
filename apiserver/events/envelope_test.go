package events

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestEnvelope(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 30, 0, 5_000_000, time.UTC)
	for name, test := range map[string]struct {
		in   content
		want string
	}{
		"a change": {
			content{
				id: "e1", eventType: "user.updated", site: "demo", subject: "Practitioner/1", changedFields: []string{"a", `b"`},
				data: Text{JSON: []byte(`{"v":"","t":"","n":1}`), VersionOffset: 6, TimeOffsets: []int{13}},
			},
			`{"id":"e1","type":"user.updated","timestamp":"2026-03-01T09:30:00.005Z","siteId":"demo","subject":"Practitioner/1","sequence":12,"changedFields":["a","b\""],"data":{"v":"7","t":"2026-03-01T09:30:00.005Z","n":1}}`,
		},
		"no subject, no fields": {
			content{id: "e1", eventType: "user.created", site: "demo", data: Text{JSON: []byte(`{}`)}},
			`{"id":"e1","type":"user.created","timestamp":"2026-03-01T09:30:00.005Z","siteId":"demo","subject":null,"sequence":12,"changedFields":null,"data":{}}`,
		},
		"a time of its own, no changed fields": {
			content{id: "e1", eventType: "t", site: "s", subject: "x", timestamp: jsontext.Value(`"2026-01-01T00:00:00+02:00"`), changedFields: []string{}, data: Text{JSON: []byte(`{}`)}},
			`{"id":"e1","type":"t","timestamp":"2026-01-01T00:00:00+02:00","siteId":"s","subject":"x","sequence":12,"changedFields":[],"data":{}}`,
		},
		"text that needs escapes": {
			content{id: `"\`, eventType: "t", site: "s", subject: "\u0000\xff", data: Text{JSON: []byte(`{}`)}},
			`{"id":"\"\\","type":"t","timestamp":"2026-03-01T09:30:00.005Z","siteId":"s","subject":"\u0000�","sequence":12,"changedFields":null,"data":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the same bytes every time
				if diff := cmp.Diff(test.want, string(test.in.envelope().Fill(12, 7, at))); diff != "" {
					t.Error(diff)
				}
			}
			if !json.Valid([]byte(test.want)) {
				t.Error("what is wanted is not JSON")
			}
		})
	}
}

func TestChangedFields(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":               {`{"a":1,"b":[1]}`, `{"b":[1],"a":1}`, []string{}},
		"other spaces, escapes": {`{"a":{"x":"é","y":2}}`, `{ "a" : {"y":2,"x":"\u00e9"} }`, []string{}},
		"a value":               {`{"a":1,"b":2}`, `{"a":1,"b":3}`, []string{"b"}},
		"within a value":        {`{"a":{"b":[1,2]}}`, `{"a":{"b":[2,1]}}`, []string{"a"}},
		"more, less, sorted":    {`{"c":1,"b":1}`, `{"a":1,"b":1}`, []string{"a", "c"}},
		"precision":             {`{"a":1.5}`, `{"a":1.50}`, []string{"a"}},
		"an escaped name":       {`{"é":1}`, `{"\u00e9":1}`, []string{}},
		"no object":             {`[]`, `{"a":1}`, nil},
		"no JSON":               {`{"a":1}`, `{"a":`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ChangedFields([]byte(test.before), []byte(test.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
