package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// changed is a store that makes what is written of records at version 1, and refuses the first
// writes with errors.
type changed struct {
	store.Store
	refusals []error
	made     []store.Event
}

func (c *changed) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	before := store.Record{Key: ops[0].Key, Version: 1}
	for _, op := range ops {
		if op.If.Approve != nil {
			if err := op.If.Approve(&before); err != nil {
				return nil, &store.RefusedError{Reason: err}
			}
		}
	}
	if len(c.refusals) > 0 {
		err := c.refusals[0]
		c.refusals = c.refusals[1:]
		return nil, err
	}
	results := make([]store.Result, len(ops))
	for i, op := range ops {
		after := store.Record{Key: op.Key, Version: 2, Body: op.Body}
		results[i] = store.Result{Outcome: store.Updated, Record: after}
		if op.Events != nil {
			c.made = append(c.made, op.Events(store.Change{Outcome: store.Updated, Before: &before, After: &after})...)
		}
	}
	return results, nil
}

func TestWritesMakeEvents(t *testing.T) {
	own := func(store.Change) []store.Event { return []store.Event{{ID: "own"}} }
	held := &store.ClaimError{Claim: store.Claim{Line: "line"}, Holder: store.Key{Type: "Other", ID: "9"}}
	for name, test := range map[string]struct {
		ops      []store.Op
		refusals []error
		fails    error
		want     []string
		refused  bool
	}{
		"each operation":          {ops: []store.Op{{Kind: store.Put, Key: store.Key{Type: "A", ID: "1"}}, {Kind: store.Put, Key: store.Key{Type: "A", ID: "2"}}}, want: []string{"A/1", "A/2"}},
		"one with its own":        {ops: []store.Op{{Kind: store.Put, Key: store.Key{Type: "A", ID: "1"}, Events: own}, {Kind: store.Put, Key: store.Key{Type: "A", ID: "2"}}}, want: []string{"own", "A/2"}},
		"a deletion too":          {ops: []store.Op{{Kind: store.Delete, Key: store.Key{Type: "A", ID: "1"}}}, want: []string{"A/1"}},
		"a write that is refused": {ops: []store.Op{{Kind: store.Put, Key: store.Key{Type: "A", ID: "1"}}}, refusals: []error{held}, refused: true},
		"no events to be had":     {ops: []store.Op{{Kind: store.Put, Key: store.Key{Type: "A", ID: "1"}}}, fails: store.ErrUnavailable, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			behind := &changed{refusals: test.refusals}
			opened, err := gate.New(behind, gate.Options{
				View: &privacy.View{
					Rules:  &privacy.Rules{},
					Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, nil },
					Reads:  func(string) (bool, error) { return true, nil },
				},
				Labels:       func(string, store.Body) store.Labels { return store.Labels{} },
				Protects:     func(recordType string) bool { return recordType == "A" },
				Unprivileged: func(string) error { return errors.New("unprivileged") },
				Events: func(op store.Op) (func(store.Change) []store.Event, error) {
					return func(store.Change) []store.Event { return []store.Event{{ID: op.Key.Type + "/" + op.Key.ID}} }, test.fails
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := opened.Write(t.Context(), test.ops); (err != nil) != test.refused || test.fails != nil && !errors.Is(err, test.fails) {
				t.Fatalf("the write: %v", err)
			}
			var got []string
			for _, event := range behind.made {
				got = append(got, event.ID)
			}
			if len(got) != len(test.want) {
				t.Fatalf("made %v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("made %v, want %v", got, test.want)
				}
			}
		})
	}
}
