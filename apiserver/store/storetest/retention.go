package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Retainer is an optional interface of a Store. The suite skips the tests of retention if the Store
// does not implement it.
type Retainer interface {
	// Retain removes the tombstones and the superseded versions from before the cutoffs, and returns
	// their numbers.
	Retain(ctx context.Context, before store.Cutoffs) (store.Retained, error)
}

// testRetention tests that retention removes tombstones and superseded versions from before its
// cutoffs, and nothing else, and that the remaining history is consistent.
func testRetention(t *testing.T, open Open) {
	s, other := open(t)
	retainer, ok := s.(Retainer)
	if !ok {
		t.Skip("the store has no retention")
	}
	retain := func(before store.Cutoffs) store.Retained {
		t.Helper()
		removed, err := retainer.Retain(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	history := func(s store.Store, k store.Key, after store.Position, count int) store.Page {
		t.Helper()
		page, err := s.History(t.Context(), store.HistoryQuery{Key: k, Count: count, After: after, Deletions: true})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	var at []time.Time
	for n := range 5 {
		at = append(at, write(t, s, put("rex", body(n))).Record.Updated)
	}
	// The versions of a record are a millisecond apart at least, so fast writes leave the clock behind:
	// each record is written after the clock has passed the times of the one before.
	pass := func() { time.Sleep(10 * time.Millisecond) }
	pass()
	write(t, s, put("old", body(1)))
	old := write(t, s, del("old")).Record.Updated
	pass()
	write(t, s, put("back", body(1)))
	write(t, s, del("back"))
	write(t, s, put("back", body(2)))
	pass()
	write(t, s, put("new", body(1)))
	late := write(t, s, del("new")).Record.Updated
	position := history(s, key("rex"), nil, 2).Next

	same(t, "removed without cutoffs", retain(store.Cutoffs{}), store.Retained{})
	same(t, "versions without retention", versions(history(s, key("rex"), nil, 10)), []int64{5, 4, 3, 2, 1})

	// Version 2 was superseded when version 3 was written, which is not before the cutoff.
	same(t, "removed", retain(store.Cutoffs{Versions: at[2]}), store.Retained{Versions: 1})
	for name, replica := range map[string]store.Store{"same replica": s, "other replica": other} {
		page := history(replica, key("rex"), nil, 10)
		same(t, name+": versions", versions(page), []int64{5, 4, 3, 2})
		same(t, name+": total", page.Total, int64(4))
		if _, err := replica.GetVersion(t.Context(), key("rex"), 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: version 1: got %v, want ErrNotFound", name, err)
		}
		for number := int64(2); number <= 5; number++ {
			if got, err := replica.GetVersion(t.Context(), key("rex"), number); err != nil || counter(t, got) != int(number)-1 {
				t.Errorf("%s: version %d: %v, error %v", name, number, got.Body, err)
			}
		}
	}
	same(t, "versions on the page after the removal", versions(history(s, key("rex"), position, 10)), []int64{3, 2})
	same(t, "removed again", retain(store.Cutoffs{Versions: at[2]}), store.Retained{})

	same(t, "removed tombstones", retain(store.Cutoffs{Tombstones: old.Add(time.Millisecond)}), store.Retained{Tombstones: 1})
	if _, err := s.Get(t.Context(), key("old")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the old tombstone: got %v, want ErrNotFound", err)
	}
	var deleted *store.DeletedError
	if _, err := s.Get(t.Context(), key("new")); !errors.As(err, &deleted) {
		t.Errorf("the new tombstone: got %v, want *DeletedError", err)
	}
	same(t, "versions of a record that was created again", versions(history(s, key("back"), nil, 10)), []int64{3, 2, 1})

	removed := retain(store.Cutoffs{Tombstones: late.Add(time.Second), Versions: late.Add(time.Second)})
	same(t, "removed at last: the tombstone of new; 3 versions of rex and 2 of back, and that of new if it was first", removed.Tombstones, int64(1))
	same(t, "the newest versions", allIDs(t, s, store.Query{Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}}}), []string{"back", "rex"})
	page := history(s, key("rex"), nil, 10)
	same(t, "the newest version of rex", []any{versions(page), page.Total}, []any{[]int64{5}, int64(1)})
	eventually(t, "history of the type has the two newest versions", func() bool {
		page := history(s, store.Key{Type: patient}, nil, 10)
		return page.Total == 2 && len(page.Records) == 2
	})
	same(t, "the next version", write(t, s, put("rex", body(9))).Record.Version, int64(6))
	same(t, "versions after another write", versions(history(s, key("rex"), nil, 10)), []int64{6, 5})
}
