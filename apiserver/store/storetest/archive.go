package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func archiveOf(t *testing.T, s store.Store) store.Archive {
	t.Helper()
	archive, ok := s.(store.Archive)
	if !ok {
		t.Fatal("the store is no Archive")
	}
	return archive
}

// dump returns all records of a site since a time. It reads pages of a few records.
func dump(t *testing.T, s store.Store, since time.Time) []store.Dumped {
	t.Helper()
	query := store.DumpQuery{Since: since, MaxRecords: 3, MaxBytes: 1 << 20}
	var all []store.Dumped
	for range 1000 {
		page, err := archiveOf(t, s).Dump(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Records...)
		if !page.More {
			return all
		}
		query.After = all[len(all)-1].Key
	}
	t.Fatal("dump: pages without end")
	return nil
}

// restore restores records and returns the outcomes. None may fail.
func restore(t *testing.T, s store.Store, records []store.Dumped) []store.Outcome {
	t.Helper()
	results, err := archiveOf(t, s).Restore(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []store.Outcome
	for i, result := range results {
		if result.Err != nil || result.Dropped != 0 {
			t.Errorf("restore %v: %v, %d versions dropped", records[i].Key, result.Err, result.Dropped)
		}
		outcomes = append(outcomes, result.Outcome)
	}
	return outcomes
}

// fillArchive writes records with everything that a dump has.
func fillArchive(t *testing.T, s store.Store) {
	t.Helper()
	for n := range 4 {
		write(t, s, put("Rex", body(n)))
	}
	write(t, s, put("gone", body(1)))
	write(t, s, del("gone"))
	write(t, s, put("back", body(1)))
	write(t, s, del("back"))
	write(t, s, put("back", body(2)))
	write(t, s, putWithMetadata("labelled", body(1), `{"labels":{"a":"b"}}`))
	write(t, s, put("labelled", body(2)))
	write(t, s, put("A.b-C.1", text(`{"resourceType":"Patient","id":"","meta":{},`+"\n"+`"multipleBirthInteger":7 , "x":"<ü>&"}`)))
	slot := put("slot", body(1))
	slot.Key.Type = "Slot"
	start := time.Date(2031, 5, 1, 9, 0, 0, 0, time.UTC)
	slot.Claims = []store.Claim{
		{Line: "room 1", From: start, Until: start.Add(time.Hour)},
		{Line: "name <é>"},
		{Line: "hold", Expires: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)},
		{Line: "expired", Expires: time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)},
	}
	write(t, s, slot)
	job := put("job", body(1))
	job.Key.Type = store.JobType
	write(t, s, job)
}

// testArchive tests that what one site dumped and another restored is the same site: versions,
// times, bytes, tombstones, claims and metadata, histories and searches.
func testArchive(t *testing.T, open Open) {
	source, _ := open(t)
	target, other := open(t)
	fillArchive(t, source)
	all := dump(t, source, time.Time{})
	var keys []string
	for _, d := range all {
		keys = append(keys, fmt.Sprintf("%s %d", d.Key.ID, len(d.Versions)))
		if err := d.Check(); err != nil {
			t.Errorf("%v: %v", d.Key, err)
		}
	}
	same(t, "dumped records and versions", keys, []string{"A.b-C.1 1", "back 3", "gone 2", "labelled 2", "Rex 4", "slot 1"})

	outcomes := restore(t, target, all)
	same(t, "outcomes", outcomes, slices.Repeat([]store.Outcome{store.Created}, len(all)))
	same(t, "the dump of what was restored", dump(t, target, time.Time{}), all)
	same(t, "outcomes of a repeated restore", restore(t, target, all), slices.Repeat([]store.Outcome{store.Unchanged}, len(all)))
	eventually(t, "the other replica has the records", func() bool { return cmp.Equal(dump(t, other, time.Time{}), all) })

	for _, query := range []store.HistoryQuery{{Key: key("rex"), Count: 20}, {Key: key("back"), Count: 20}, {Key: key("gone"), Deletions: true, Count: 20}} {
		want, err := source.History(t.Context(), query)
		got, targetErr := target.History(t.Context(), query)
		if err != nil || targetErr != nil {
			t.Fatal(err, targetErr)
		}
		same(t, "history of "+query.Key.ID, anonymous(got.Records), anonymous(want.Records))
	}
	found := store.Query{Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}}}
	same(t, "search", anonymous(allRecords(t, target, found)), anonymous(allRecords(t, source, found)))

	page, err := archiveOf(t, source).Dump(t.Context(), store.DumpQuery{Heads: true, MaxRecords: 100, MaxBytes: 1 << 20})
	if err != nil || page.More || len(page.Records) != len(all) {
		t.Fatalf("heads: got %d, more %t, %v; want %d", len(page.Records), page.More, err, len(all))
	}
	for i := range all {
		head, want := page.Records[i].Newest(), all[i].Newest()
		if len(page.Records[i].Versions) != 1 || len(head.Body.JSON) > 0 || !store.SameHead(head, want, time.Now()) {
			t.Errorf("head %+v differs from %+v", head, want)
		}
	}
	byKey := store.DumpQuery{Keys: []store.Key{all[1].Key, all[4].Key}, MaxRecords: 2, MaxBytes: 1 << 20}
	chosen, err := archiveOf(t, source).Dump(t.Context(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "records by key", chosen.Records, []store.Dumped{all[1], all[4]})
	byKey.Heads = true
	heads, err := archiveOf(t, source).Dump(t.Context(), byKey)
	if err != nil || heads.More {
		t.Fatalf("heads by key: more %t, %v", heads.More, err)
	}
	same(t, "keys of heads by key", dumpedKeys(heads.Records), dumpedKeys(chosen.Records))
	latest := all[0].Newest().Updated
	for i := range all {
		if updated := all[i].Newest().Updated; updated.After(latest) {
			latest = updated
		}
	}
	since := store.DumpQuery{Since: latest, MaxRecords: 100, MaxBytes: 1 << 20}
	recent, err := archiveOf(t, source).Dump(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	since.Heads = true
	heads, err = archiveOf(t, source).Dump(t.Context(), since)
	if err != nil || len(heads.Records) == len(all) {
		t.Fatalf("heads since the last change: %d of %d, %v", len(heads.Records), len(all), err)
	}
	same(t, "keys of heads since a time", dumpedKeys(heads.Records), dumpedKeys(recent.Records))

	rival := put("rival", body(1))
	rival.Key.Type, rival.Claims = "Slot", []store.Claim{{Line: "name <é>"}}
	var claimed *store.ClaimError
	if _, err := target.Write(t.Context(), []store.Op{rival}); !errors.As(err, &claimed) {
		t.Errorf("write of a claim that a restored record holds: got %v, want a ClaimError", err)
	}
	rival.Claims[0].Line = "expired"
	write(t, target, rival)

	same(t, "the version after a restore", write(t, target, put("rex", body(9))).Record.Version, int64(5))
	same(t, "search after a write", allIDs(t, target, found), []string{"A.b-C.1", "back", "labelled", "Rex"})
}

// anonymous returns records without the values that a restore makes anew.
func anonymous(records []store.Record) []store.Record {
	var all []store.Record
	for _, r := range records {
		r.UID, r.Revision = "", ""
		all = append(all, r)
	}
	return all
}

// testArchiveCatchesUp tests that the restore of a second dump adds what the first dump lacks, and that
// the restore of the first dump then changes nothing.
func testArchiveCatchesUp(t *testing.T, open Open) {
	source, _ := open(t)
	target, _ := open(t)
	fillArchive(t, source)
	first := dump(t, source, time.Time{})
	restore(t, target, first)
	changed := write(t, source, put("rex", body(5))).Record.Updated
	write(t, source, put("rex", body(6)))
	write(t, source, del("labelled"))
	write(t, source, put("gone", body(2)))
	write(t, source, put("new", body(1)))
	second := dump(t, source, changed)
	var keys []string
	for _, d := range second {
		keys = append(keys, d.Key.ID)
	}
	same(t, "changed records", keys, []string{"gone", "labelled", "new", "Rex"})
	same(t, "outcomes", restore(t, target, second), []store.Outcome{store.Updated, store.Updated, store.Created, store.Updated})
	same(t, "an older dump changes nothing", restore(t, target, first), slices.Repeat([]store.Outcome{store.Unchanged}, len(first)))
	all := dump(t, source, time.Time{})
	same(t, "the dump of what was restored", dump(t, target, time.Time{}), all)
	found := store.Query{Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}}}
	same(t, "search", anonymous(allRecords(t, target, found)), anonymous(allRecords(t, source, found)))

	// A change of nothing but metadata.
	write(t, source, putWithMetadata("rex", body(6), `{"labels":{"c":"d"}}`))
	same(t, "outcomes", restore(t, target, dump(t, source, changed)), []store.Outcome{store.Unchanged, store.Unchanged, store.Unchanged, store.Updated})
	same(t, "metadata", metadataOf(get(t, target, "rex")), metadataOf(get(t, source, "rex")))
	same(t, "search by values after that", anonymous(allRecords(t, target, found)), anonymous(allRecords(t, source, found)))
}

// testArchiveRefuses tests that a record which cannot be restored is left as it is, and that the
// other records are restored.
func testArchiveRefuses(t *testing.T, open Open) {
	source, _ := open(t)
	target, _ := open(t)
	fillArchive(t, source)
	all := dump(t, source, time.Time{})
	write(t, target, put("rex", body(77)))
	rival := put("rival", body(1))
	rival.Key.Type, rival.Claims = "Slot", []store.Claim{{Line: "name <é>"}}
	write(t, target, rival)
	gap := store.Dumped{Key: key("gap"), Versions: slices.Clone(all[4].Versions)}
	gap.Versions[2].Updated = gap.Versions[1].Updated
	results, err := archiveOf(t, target).Restore(t.Context(), append(slices.Clone(all), gap, store.Dumped{Key: key("none")}))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, result := range results {
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", result.Err), "*store."))
	}
	same(t, "errors", kinds, []string{"<nil>", "<nil>", "<nil>", "<nil>", "DivergedError", "ClaimError", "InvalidDumpError", "InvalidDumpError"})
	if got := counter(t, get(t, target, "rex")); got != 77 {
		t.Errorf("the diverged record has the counter %d, want 77", got)
	}
	if _, err := target.Get(t.Context(), store.Key{Type: "Slot", ID: "slot"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a record whose claim is taken: got %v, want ErrNotFound", err)
	}
	same(t, "records", len(dump(t, target, time.Time{})), 6)

	// The target has newer versions: an older dump must not replace anything.
	empty, _ := open(t)
	restore(t, empty, all)
	write(t, empty, put("rex", body(8)))
	older := all[4]
	same(t, "a dump of an earlier state", restore(t, empty, []store.Dumped{older}), []store.Outcome{store.Unchanged})
	older.Versions = slices.Clone(older.Versions)
	other := &older.Versions[len(older.Versions)-1]
	other.Body.JSON = bytes.Replace(other.Body.JSON, []byte("3}"), []byte("4}"), 1)
	results, err = archiveOf(t, empty).Restore(context.WithoutCancel(t.Context()), []store.Dumped{older})
	if diverged := new(store.DivergedError); err != nil || !errors.As(results[0].Err, &diverged) {
		t.Errorf("another version with a number that exists: got %v, %v, want a DivergedError", results, err)
	}
}

// testArchiveParts tests that a record can be restored in parts, and only in their order.
func testArchiveParts(t *testing.T, open Open) {
	source, _ := open(t)
	target, _ := open(t)
	fillArchive(t, source)
	rex := dump(t, source, time.Time{})[4]
	part := func(begin, end int) store.Dumped {
		return store.Dumped{Key: rex.Key, Versions: rex.Versions[begin:end], Continues: begin > 0}
	}
	refuse := func(d store.Dumped) {
		t.Helper()
		results, err := archiveOf(t, target).Restore(t.Context(), []store.Dumped{d})
		if incomplete := new(store.IncompleteError); err != nil || !errors.As(results[0].Err, &incomplete) {
			t.Errorf("got %v, %v, want an IncompleteError", results, err)
		}
	}
	first, second, third := part(0, 2), part(1, 3), part(2, 4)
	refuse(second)
	same(t, "first part", restore(t, target, []store.Dumped{first}), []store.Outcome{store.Created})
	refuse(third)
	same(t, "second part", restore(t, target, []store.Dumped{second}), []store.Outcome{store.Updated})
	same(t, "third part", restore(t, target, []store.Dumped{third}), []store.Outcome{store.Updated})
	for _, repeated := range []store.Dumped{third, second, first} {
		same(t, "repeated part", restore(t, target, []store.Dumped{repeated}), []store.Outcome{store.Unchanged})
	}
	same(t, "the dump of what was restored", dump(t, target, time.Time{}), []store.Dumped{rex})
	history := store.HistoryQuery{Key: rex.Key, Count: 20}
	want, err := source.History(t.Context(), history)
	got, targetErr := target.History(t.Context(), history)
	if err != nil || targetErr != nil {
		t.Fatal(err, targetErr)
	}
	same(t, "history", anonymous(got.Records), anonymous(want.Records))
}

func dumpedKeys(records []store.Dumped) []store.Key {
	keys := make([]store.Key, len(records))
	for i := range records {
		keys[i] = records[i].Key
	}
	return keys
}
