package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// testChangeLog tests that a log of changes has each kind of change, those without a version included, in
// all replicas, and that a dump from a version on has what was added since.
func testChangeLog(t *testing.T, open Open) {
	s, other := open(t)
	fillArchive(t, s)
	log, isLog := s.(store.ChangeLog)
	otherLog, alsoLog := other.(store.ChangeLog)
	if !isLog || !alsoLog {
		t.Fatal("the store is no ChangeLog")
	}
	if err := log.LogChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := otherLog.LogChanges(t.Context()); err != nil {
		t.Fatalf("a log that exists already: %v", err)
	}
	before := dump(t, s, time.Time{})
	eventually(t, "the other replica has the records", func() bool { return len(dump(t, other, time.Time{})) == len(before) })
	mark := func(l store.ChangeLog) string {
		t.Helper()
		mark, err := l.Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return mark
	}
	// changed returns the ids, in lower case, of the records that the log has as changed since a mark.
	changed := func(l store.ChangeLog, since string) map[string]bool {
		t.Helper()
		keys, err := l.ChangedSince(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for i, k := range keys {
			if i > 0 && keys[i-1].Compare(k) >= 0 {
				t.Errorf("changed records: %v after %v", k, keys[i-1])
			}
			ids[strings.ToLower(k.ID)] = true
		}
		return ids
	}
	slot := store.Key{Type: "Slot", ID: "slot"}
	released := put("slot", body(1))
	released.Key, released.Claims = slot, []store.Claim{}
	for _, step := range []struct {
		what string
		op   store.Op
	}{
		{"rex", put("rex", body(9))},
		{"labelled", putWithMetadata("labelled", body(2), `{"labels":{"c":"d"}}`)},
		{"slot", released},
		{"back", del("back")},
		{"a.b-c.1", store.Op{Kind: store.Purge, Key: key("A.b-C.1")}},
		{"new", put("new", body(1))},
	} {
		since, otherSince := mark(log), mark(otherLog)
		write(t, s, step.op)
		if !changed(log, since)[step.what] {
			t.Errorf("%s is missing in the log of its change", step.what)
		}
		eventually(t, "the other replica has the change of "+step.what, func() bool { return changed(otherLog, otherSince)[step.what] && changed(otherLog, since)[step.what] })
		if last := mark(log); changed(log, last)["gone"] {
			t.Errorf("a record that never changed is in the log")
		}
	}

	counts, err := log.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "numbers of records", counts, store.Counts{Records: 4, Tombstones: 2})
	rex := store.DumpQuery{Keys: []store.Key{key("back"), key("rex")}, Oldest: []int64{99, 4}, MaxRecords: 2, MaxBytes: 1 << 20}
	page, err := archiveOf(t, s).Dump(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	var versions []int64
	for i := range page.Records {
		for j := range page.Records[i].Versions {
			versions = append(versions, page.Records[i].Versions[j].Version)
		}
	}
	same(t, "versions from a number on, and the newest one", versions, []int64{4, 4, 5})
	rex.Heads = true
	if page, err = archiveOf(t, s).Dump(t.Context(), rex); err != nil || len(page.Records) != 2 {
		t.Fatal(page, err)
	}
	same(t, "superseded versions of heads", []int64{page.Records[0].Superseded, page.Records[1].Superseded}, []int64{3, 4})

	if _, err := log.ChangedSince(t.Context(), "unknown"); !errors.Is(err, store.ErrChangesLost) {
		t.Errorf("an unknown mark: got %v, want ErrChangesLost", err)
	}
	if err := log.DropChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := otherLog.DropChanges(t.Context()); err != nil {
		t.Fatalf("a log that is gone already: %v", err)
	}
}
