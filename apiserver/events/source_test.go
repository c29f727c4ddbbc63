package events_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/store"
)

// plain is a kind whose records are what events are about, without gaps.
var plain = &events.Kind{
	Moment: events.MomentOf,
	Fields: func(body store.Body) []byte { return body.JSON },
	Data:   func(change store.Change) events.Text { return events.Text{JSON: change.After.Body.JSON} },
}

func source(targets map[string][]string) *events.Source {
	return &events.Source{
		SiteID:   "demo",
		Mappings: map[string]events.Mapping{"Thing": {Created: "user.created", Updated: "user.updated"}, "Half": {Updated: "user.updated"}},
		KindOf:   func(string) *events.Kind { return plain },
		Targets: func(eventType string) ([]string, error) {
			if targets == nil {
				return nil, store.ErrUnavailable
			}
			return targets[eventType], nil
		},
		Restricts: func(_ string, body store.Body) bool { return strings.Contains(string(body.JSON), "secret") },
	}
}

func version(recordType, body string) *store.Record {
	return &store.Record{Key: store.Key{Type: recordType, ID: "1"}, Version: 2, Body: store.Body{JSON: []byte(body)}}
}

func TestChangesMakeEvents(t *testing.T) {
	both := map[string][]string{"user.created": {"w1"}, "user.updated": {"w1", "w2"}}
	type made struct {
		Type, Subject string
		Targets       []string
		Restricted    bool
		Envelope      string
	}
	for name, test := range map[string]struct {
		targets map[string][]string
		op      store.Op
		change  store.Change
		want    *made
	}{
		"a create": {
			both,
			store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}},
			store.Change{Outcome: store.Created, After: version("Thing", `{"a":1}`)},
			&made{"user.created", "Thing/1", []string{"w1"}, false, `"changedFields":null,"data":{"a":1}}`},
		},
		"an update": {
			both,
			store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}},
			store.Change{Outcome: store.Updated, Before: version("Thing", `{"a":1}`), After: version("Thing", `{"a":2}`)},
			&made{"user.updated", "Thing/1", []string{"w1", "w2"}, false, `"changedFields":["a"],"data":{"a":2}}`},
		},
		"a hidden record": {
			both,
			store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}},
			store.Change{Outcome: store.Created, After: version("Thing", `{"a":"secret"}`)},
			&made{"user.created", "Thing/1", []string{"w1"}, true, `"changedFields":null,"data":{"a":"secret"}}`},
		},
		"metadata alone": {
			both,
			store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}},
			store.Change{Outcome: store.Updated, Before: version("Thing", `{"a":1}`), After: version("Thing", `{"a":1}`)},
			nil,
		},
		"no webhook for this one": {
			map[string][]string{"user.updated": {"w1"}},
			store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}},
			store.Change{Outcome: store.Created, After: version("Thing", `{"a":1}`)},
			nil,
		},
		"not mapped": {
			both, store.Op{Kind: store.Put, Key: store.Key{Type: "Half", ID: "1"}}, store.Change{Outcome: store.Created, After: version("Half", `{}`)}, nil,
		},
		"a purge": {both, store.Op{Kind: store.Put, Key: store.Key{Type: "Thing", ID: "1"}}, store.Change{Outcome: store.Removed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			makes, err := source(test.targets).Of(test.op)
			if err != nil || makes == nil {
				t.Fatalf("no function: %v", err)
			}
			got := makes(test.change)
			if diff := cmp.Diff(got, makes(test.change)); diff != "" {
				t.Errorf("called twice, it makes other events: %s", diff)
			}
			if test.want == nil {
				if len(got) != 0 {
					t.Errorf("made %+v", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("made %+v", got)
			}
			text := string(got[0].Envelope.Fill(1, 2, time.Unix(0, 0)))
			if got[0].ID == "" || !strings.HasPrefix(text, `{"id":"`+got[0].ID+`","type":"`+test.want.Type+`",`) || !strings.HasSuffix(text, test.want.Envelope) {
				t.Errorf("the envelope is %s", text)
			}
			is := made{got[0].Type, got[0].Subject, got[0].Targets, got[0].Restricted, test.want.Envelope}
			if diff := cmp.Diff(*test.want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOperationsThatMakeNoEvents have no function, so that engines do nothing for them.
func TestOperationsThatMakeNoEvents(t *testing.T) {
	targets := map[string][]string{"user.created": {"w"}}
	for name, op := range map[string]store.Op{
		"a type that is no source": {Kind: store.Put, Key: store.Key{Type: "Other"}},
		"no webhooks":              {Kind: store.Put, Key: store.Key{Type: "Half"}},
		"a deletion":               {Kind: store.Delete, Key: store.Key{Type: "Thing"}},
		"a purge":                  {Kind: store.Purge, Key: store.Key{Type: "Thing"}},
	} {
		if makes, err := source(targets).Of(op); makes != nil || err != nil {
			t.Errorf("%s: %t, %v", name, makes != nil, err)
		}
	}
}

func TestWebhooksThatAreNotKnownYet(t *testing.T) {
	if _, err := source(nil).Of(store.Op{Kind: store.Put, Key: store.Key{Type: "Thing"}}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change: %v", err)
	}
	if _, err := source(nil).Published(events.Published{ID: "1", Type: "user.created"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("an event: %v", err)
	}
	if _, err := source(nil).Of(store.Op{Kind: store.Put, Key: store.Key{Type: "Other"}}); err != nil {
		t.Errorf("a record that makes no events: %v", err)
	}
}

func TestPublished(t *testing.T) {
	s := source(map[string][]string{"user.created": {"w1"}})
	for data, restricted := range map[string]bool{
		`{"a":"secret"}`:                             false,
		`{"resourceType":"X","a":"secret"}`:          true,
		`{"resourceType":"X","a":"nothing"}`:         false,
		`{"resourceType":7,"a":"secret"}`:            false,
		`{"meta":{},"resourceType":"","a":"secret"}`: false,
	} {
		makes, err := s.Published(events.Published{ID: "e", Type: "user.created", Subject: "a/1", Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		got := makes(store.Change{})
		if len(got) != 1 || got[0].Restricted != restricted || got[0].ID != "e" || got[0].Subject != "a/1" {
			t.Errorf("%s made %+v", data, got)
		}
	}
	if makes, err := s.Published(events.Published{ID: "e", Type: "user.updated", Data: []byte(`{}`)}); makes != nil || err != nil {
		t.Errorf("without webhooks: %t, %v", makes != nil, err)
	}
}
