package audit

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// shelf is a store of which each call returns the same.
type shelf struct {
	store.Restricted
	record store.Record
	page   store.Page
	err    error
	wrote  int
}

func (s *shelf) Get(context.Context, store.Key) (store.Record, error) { return s.record, s.err }
func (s *shelf) GetVersion(context.Context, store.Key, int64) (store.Record, error) {
	return s.record, s.err
}

func (s *shelf) History(context.Context, store.HistoryQuery) (store.Page, error) {
	return s.page, s.err
}
func (s *shelf) Search(context.Context, store.Query) (store.Page, error) { return s.page, s.err }
func (s *shelf) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	s.wrote += len(ops)
	return make([]store.Result, len(ops)), s.err
}

func TestObserve(t *testing.T) {
	key := func(id string) store.Key { return store.Key{Type: "Patient", ID: id} }
	page := store.Page{Records: []store.Record{{Key: key("a")}, {Key: key("b"), Deleted: true}}, Included: []store.Record{{Key: key("c")}}}
	ops := []store.Op{{Key: key("w")}, {Key: key("v")}}
	for name, test := range map[string]struct {
		call          func(context.Context, store.Store)
		err           error
		looked, wrote Records
	}{
		"a read":                 {call: func(ctx context.Context, s store.Store) { _, _ = s.Get(ctx, key("A")) }, looked: RecordsOf("Patient/a")},
		"a read of a version":    {call: func(ctx context.Context, s store.Store) { _, _ = s.GetVersion(ctx, key("a"), 1) }, looked: RecordsOf("Patient/a")},
		"a read that fails":      {call: func(ctx context.Context, s store.Store) { _, _ = s.Get(ctx, key("a")) }, err: store.ErrNotFound},
		"a search":               {call: func(ctx context.Context, s store.Store) { _, _ = s.Search(ctx, store.Query{}) }, looked: RecordsOf("Patient/a", "Patient/b", "Patient/c")},
		"a history":              {call: func(ctx context.Context, s store.Store) { _, _ = s.History(ctx, store.HistoryQuery{}) }, looked: RecordsOf("Patient/a", "Patient/b", "Patient/c")},
		"a write":                {call: func(ctx context.Context, s store.Store) { _, _ = s.Write(ctx, ops) }, wrote: RecordsOf("Patient/w", "Patient/v")},
		"a write that may be in": {call: func(ctx context.Context, s store.Store) { _, _ = s.Write(ctx, ops) }, err: store.ErrUnavailable, wrote: RecordsOf("Patient/w", "Patient/v")},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := &Recorder{}
			test.call(recorder.with(t.Context()), Observe(&shelf{record: store.Record{Key: key("a")}, page: page, err: test.err}))
			if diff := cmp.Diff([]Records{test.looked, test.wrote}, []Records{recorder.read.records(), recorder.written.records()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if Observe(nil) != nil {
		t.Error("a site without a store has one")
	}
	_, _ = Observe(&shelf{}).Get(t.Context(), key("a")) // no Recorder: nothing is recorded
}

// TestObserveRefuses refuses to write while the log is known to fail.
func TestObserveRefuses(t *testing.T) {
	log := NewLog("oak", &memory{err: errors.New("away")}, Settings{})
	defer log.Close(t.Context())
	_ = log.add(t.Context(), entries(1), true)
	recorder, records := &Recorder{}, &shelf{}
	recorder.At(Sink{ID: "1042", Log: log})
	ctx := recorder.with(t.Context())
	if _, err := Observe(records).Write(ctx, make([]store.Op, 1)); !errors.Is(err, ErrUnavailable) || records.wrote != 0 {
		t.Errorf("%d operations, error %v", records.wrote, err)
	}
	log.Configure(Settings{Continue: true})
	if _, err := Observe(records).Write(ctx, make([]store.Op, 1)); err != nil || records.wrote != 1 {
		t.Errorf("where the site continues: %d operations, error %v", records.wrote, err)
	}
}
