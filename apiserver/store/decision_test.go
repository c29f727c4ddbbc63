package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

var rex = store.Key{Type: "Patient", ID: "rex"}

func bodyOf(text string) store.Body {
	return store.Body{JSON: []byte(text), IDOffset: 1, MetaOffset: 2}
}

// room is a claim that expires at a time.
func room(expires int64) store.Claim {
	return store.Claim{Line: "room", From: at(500), Until: at(600), Expires: at(expires)}
}

// stored returns version 3 of a record, created at 10 and updated at 30, with changes.
func stored(changes ...func(*store.Record)) *store.Record {
	r := &store.Record{
		Key: rex, UID: "uid", Version: 3, Revision: "revision", Created: at(10), Updated: at(30), Method: store.MethodPost,
		Body: bodyOf(`{"a":1}`), Claims: []store.Claim{room(0)}, Metadata: []byte("old"), MetadataVersion: 2,
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

// tombstone returns version 4 of the same record.
func tombstone() *store.Record {
	return &store.Record{
		Key: rex, UID: "uid", Version: 4, Revision: "revision", Created: at(10), Updated: at(40), Method: store.MethodDelete, Deleted: true,
	}
}

func TestDecide(t *testing.T) {
	const now = 100
	put := func(body string, changes ...func(*store.Op)) store.Op {
		op := store.Op{Kind: store.Put, Key: store.Key{Type: "Patient", ID: "Rex"}, Method: store.MethodPut, Body: bodyOf(body)}
		for _, change := range changes {
			change(&op)
		}
		return op
	}
	claims := func(claims ...store.Claim) func(*store.Op) {
		return func(op *store.Op) { op.Claims = append([]store.Claim{}, claims...) }
	}
	metadata := func(text string) func(*store.Op) { return func(op *store.Op) { op.Metadata = []byte(text) } }
	remove := store.Op{Kind: store.Delete, Key: rex, Method: store.MethodDelete}
	purge := store.Op{Kind: store.Purge, Key: rex}
	// updated is the version that a Put of {"a":2} makes of the stored record.
	updated := func(changes ...func(*store.Record)) store.Record {
		return *stored(append([]func(*store.Record){func(r *store.Record) {
			r.Version, r.Revision, r.Updated, r.Method, r.Body = 4, "", at(now), store.MethodPut, bodyOf(`{"a":2}`)
		}}, changes...)...)
	}
	annotated := func(text []byte, version int64) store.Record {
		return *stored(func(r *store.Record) { r.Revision, r.Metadata, r.MetadataVersion = "", text, version })
	}
	created := store.Record{
		Key: store.Key{Type: "Patient", ID: "Rex"}, Version: 1, Created: at(now), Updated: at(now), Method: store.MethodPut, Body: bodyOf(`{"a":1}`),
	}
	recreated := created
	recreated.Key, recreated.Version = rex, 5
	withAll := created
	withAll.Claims, withAll.Metadata, withAll.MetadataVersion = []store.Claim{room(200)}, []byte("new"), 1
	deleted := *tombstone()
	deleted.Revision, deleted.Updated = "", at(now)

	for name, test := range map[string]struct {
		op      store.Op
		current *store.Record
		action  store.Action
		outcome store.Outcome
		after   store.Record
	}{
		"a put of a new record":                 {put(`{"a":1}`), nil, store.ActionCreate, store.Created, created},
		"with claims and metadata":              {put(`{"a":1}`, claims(room(200)), metadata("new")), nil, store.ActionCreate, store.Created, withAll},
		"with empty claims and metadata":        {put(`{"a":1}`, claims(), metadata("")), nil, store.ActionCreate, store.Created, created},
		"a put over a tombstone":                {put(`{"a":1}`), tombstone(), store.ActionUpdate, store.Created, recreated},
		"a put of another body":                 {put(`{"a":2}`), stored(), store.ActionUpdate, store.Updated, updated()},
		"a put of the same value":               {put(`{ "a": 1 }`), stored(), store.ActionNone, store.Unchanged, *stored()},
		"of the same claims":                    {put(`{"a":1}`, claims(room(0))), stored(), store.ActionNone, store.Unchanged, *stored()},
		"of the same metadata":                  {put(`{"a":1}`, metadata("old")), stored(), store.ActionNone, store.Unchanged, *stored()},
		"of other metadata":                     {put(`{"a":1}`, metadata("new")), stored(), store.ActionAnnotate, store.Updated, annotated([]byte("new"), 3)},
		"of no metadata":                        {put(`{"a":1}`, metadata("")), stored(), store.ActionAnnotate, store.Updated, annotated(nil, 0)},
		"of another body and metadata":          {put(`{"a":2}`, metadata("new")), stored(), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Metadata, r.MetadataVersion = []byte("new"), 4 })},
		"of another body without metadata":      {put(`{"a":2}`, metadata("")), stored(), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Metadata, r.MetadataVersion = nil, 0 })},
		"of another body and another expiry":    {put(`{"a":2}`, claims(room(200))), stored(), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Claims = []store.Claim{room(200)} })},
		"of another expiry":                     {put(`{"a":1}`, claims(room(200))), stored(), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Body, r.Claims = bodyOf(`{"a":1}`), []store.Claim{room(200)} })},
		"that releases the claims":              {put(`{"a":1}`, claims()), stored(), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Body, r.Claims = bodyOf(`{"a":1}`), nil })},
		"that keeps a claim that has not ended": {put(`{"a":2}`), stored(func(r *store.Record) { r.Claims = []store.Claim{room(now), room(now + 1)} }), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Claims = []store.Claim{room(now + 1)} })},
		"that drops a claim that has ended":     {put(`{"a":2}`), stored(func(r *store.Record) { r.Claims = []store.Claim{room(now)} }), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Claims = nil })},
		"after the clock has stepped back":      {put(`{"a":2}`), stored(func(r *store.Record) { r.Updated = at(now) }), store.ActionUpdate, store.Updated, updated(func(r *store.Record) { r.Updated = at(now).Add(time.Millisecond) })},
		"a delete":                              {remove, stored(), store.ActionUpdate, store.Removed, deleted},
		"a delete of a tombstone":               {remove, tombstone(), store.ActionNone, store.Unchanged, *tombstone()},
		"a delete of nothing":                   {remove, nil, store.ActionNone, store.Unchanged, store.Record{}},
		"a purge":                               {purge, stored(), store.ActionPurge, store.Removed, store.Record{Key: rex, Version: 3, Updated: at(now)}},
		"a purge of a tombstone":                {purge, tombstone(), store.ActionPurge, store.Removed, store.Record{Key: rex, Version: 4, Updated: at(now)}},
		"a purge of nothing":                    {purge, nil, store.ActionNone, store.Unchanged, store.Record{}},
	} {
		before := test.current
		got, err := store.Decide(test.op, test.current, at(now))
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		if diff := cmp.Diff(store.Decision{Action: test.action, Outcome: test.outcome, Before: before, After: test.after}, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestDecideFails shows which preconditions fail, for each kind of operation.
func TestDecideFails(t *testing.T) {
	refusal := errors.New("refused")
	for name, test := range map[string]struct {
		precondition store.Precondition
		current      *store.Record
		want         string
	}{
		"present, live":                 {store.Precondition{Present: true}, stored(), ""},
		"present, deleted":              {store.Precondition{Present: true}, tombstone(), "deleted"},
		"present, absent":               {store.Precondition{Present: true}, nil, "not found"},
		"absent, live":                  {store.Precondition{Absent: true}, stored(), "precondition at 3"},
		"absent, deleted":               {store.Precondition{Absent: true}, tombstone(), ""},
		"absent, absent":                {store.Precondition{Absent: true}, nil, ""},
		"version, the same":             {store.Precondition{Version: 3}, stored(), ""},
		"version, another":              {store.Precondition{Version: 2}, stored(), "precondition at 3"},
		"version, of the tombstone":     {store.Precondition{Version: 4}, tombstone(), "precondition"},
		"version, absent":               {store.Precondition{Version: 1}, nil, "precondition"},
		"tombstone's version":           {store.Precondition{Absent: true, Version: 4}, tombstone(), ""},
		"not the tombstone's version":   {store.Precondition{Absent: true, Version: 3}, tombstone(), "precondition"},
		"revision, the same":            {store.Precondition{Revision: "revision"}, stored(), ""},
		"revision, another":             {store.Precondition{Revision: "other"}, stored(), "precondition at 3"},
		"revision, deleted":             {store.Precondition{Revision: "revision"}, tombstone(), "precondition"},
		"uid, the same":                 {store.Precondition{UID: "uid"}, stored(), ""},
		"uid, another":                  {store.Precondition{UID: "other"}, stored(), "precondition at 3"},
		"uid, absent":                   {store.Precondition{UID: "uid"}, nil, "precondition"},
		"present with a version, gone":  {store.Precondition{Present: true, Version: 3}, tombstone(), "precondition"},
		"approved":                      {store.Precondition{Approve: func(*store.Record) error { return nil }}, stored(), ""},
		"refused":                       {store.Precondition{Approve: func(*store.Record) error { return refusal }}, stored(), "refused"},
		"refused before other failures": {store.Precondition{Present: true, Approve: func(*store.Record) error { return refusal }}, nil, "refused"},
	} {
		for _, kind := range []store.OpKind{store.Put, store.Delete, store.Purge} {
			got, err := store.Decide(store.Op{Kind: kind, Key: rex, If: test.precondition}, test.current, at(100))
			if described := describe(err); described != test.want {
				t.Errorf("%s, operation %d: got %q, want %q", name, kind, described, test.want)
			}
			if err != nil && got.Action != store.ActionNone {
				t.Errorf("%s, operation %d: got action %d with an error, want none", name, kind, got.Action)
			}
		}
	}
}

// describe names the error of a precondition.
func describe(err error) string {
	var (
		deleted      *store.DeletedError
		precondition *store.PreconditionError
		refused      *store.RefusedError
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	case errors.As(err, &deleted):
		return "deleted"
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &precondition) && precondition.Current != nil:
		return "precondition at " + string(rune('0'+precondition.Current.Version))
	case errors.As(err, &precondition):
		return "precondition"
	default:
		return err.Error()
	}
}

// TestDecisionEvents shows which decisions have events, and what Op.Events gets.
func TestDecisionEvents(t *testing.T) {
	for name, test := range map[string]struct {
		op      store.Op
		current *store.Record
		want    *store.Change
	}{
		"created": {
			store.Op{Kind: store.Put, Key: rex, Body: bodyOf(`{}`)},
			nil,
			&store.Change{Outcome: store.Created, After: &store.Record{Key: rex, Version: 1, Body: bodyOf(`{}`)}},
		},
		"updated": {
			store.Op{Kind: store.Put, Key: rex, Body: bodyOf(`{}`), Claims: []store.Claim{}, Metadata: []byte{}},
			stored(),
			&store.Change{Outcome: store.Updated, Before: stored(), After: &store.Record{Key: rex, Version: 4, Body: bodyOf(`{}`)}},
		},
		"deleted": {
			store.Op{Kind: store.Delete, Key: rex},
			stored(),
			&store.Change{Outcome: store.Removed, Before: stored(), After: &store.Record{Key: rex, Version: 4, Deleted: true}},
		},
		"purged":    {store.Op{Kind: store.Purge, Key: rex}, stored(), &store.Change{Outcome: store.Removed, Before: stored()}},
		"unchanged": {store.Op{Kind: store.Put, Key: rex, Body: bodyOf(`{"a":1}`)}, stored(), nil},
		"annotated": {store.Op{Kind: store.Put, Key: rex, Body: bodyOf(`{"a":1}`), Metadata: []byte("new")}, stored(), nil},
	} {
		var got *store.Change
		test.op.Events = func(change store.Change) []store.Event {
			got = &change
			return []store.Event{{ID: "1"}}
		}
		d, err := store.Decide(test.op, test.current, at(100))
		if err != nil {
			t.Fatal(err)
		}
		if events := d.Events(test.op); len(events) == 1 != (test.want != nil) {
			t.Errorf("%s: got %d events", name, len(events))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		test.op.Events = nil
		if events := d.Events(test.op); events != nil {
			t.Errorf("%s: got events %v of an operation without", name, events)
		}
	}
}
