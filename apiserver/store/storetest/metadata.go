package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// putWithMetadata returns a put of a body and metadata.
func putWithMetadata(id string, b store.Body, metadata string) store.Op {
	op := put(id, b)
	op.Metadata = []byte(metadata)
	return op
}

// storedMetadata is the metadata of a record, the version at which it was written, and the version
// of the record.
type storedMetadata struct {
	Metadata           string
	Written, OfVersion int64
}

func metadataOf(r store.Record) storedMetadata {
	return storedMetadata{string(r.Metadata), r.MetadataVersion, r.Version}
}

func testMetadata(t *testing.T, open Open) {
	s, other := open(t)
	created := write(t, s, putWithMetadata("rex", body(1), `{"labels":{"a":"<ü>"}}`)).Record
	same(t, "created", metadataOf(created), storedMetadata{`{"labels":{"a":"<ü>"}}`, 1, 1})
	same(t, "read", get(t, other, "rex"), created)

	updated := write(t, s, put("rex", body(2))).Record
	same(t, "a put that does not say leaves it", metadataOf(updated), storedMetadata{`{"labels":{"a":"<ü>"}}`, 1, 2})
	same(t, "to put the same again", write(t, s, putWithMetadata("rex", body(2), `{"labels":{"a":"<ü>"}}`)).Outcome, store.Unchanged)

	annotated := write(t, s, putWithMetadata("rex", body(2), `{"labels":{"b":"2"}}`))
	same(t, "outcome of a change of metadata alone", annotated.Outcome, store.Updated)
	same(t, "changed", metadataOf(annotated.Record), storedMetadata{`{"labels":{"b":"2"}}`, 2, 2})
	want := updated
	want.Metadata, want.MetadataVersion, want.Revision = annotated.Record.Metadata, 2, annotated.Record.Revision
	same(t, "a change of metadata alone changes nothing else", annotated.Record, want)
	if annotated.Record.Revision == updated.Revision {
		t.Error("a change of metadata alone is no revision")
	}
	same(t, "read after it", get(t, other, "rex"), annotated.Record)
	same(t, "found after it", search(t, s, store.Query{Types: patients, Count: 10}).Records, []store.Record{annotated.Record})

	page, err := s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "it is not in the history", versions(page), []int64{2, 1})
	same(t, "the newest version in the history", page.Records[0], annotated.Record)
	same(t, "an older version in the history", metadataOf(page.Records[1]), storedMetadata{"", 0, 1})
	newest, err := other.GetVersion(t.Context(), key("rex"), 2)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the newest version by number", newest, annotated.Record)

	both := write(t, other, putWithMetadata("rex", body(3), `{"labels":{"c":"3"}}`))
	same(t, "body and metadata at once", metadataOf(both.Record), storedMetadata{`{"labels":{"c":"3"}}`, 3, 3})
	none := write(t, s, putWithMetadata("rex", body(3), ``))
	same(t, "taken away", metadataOf(none.Record), storedMetadata{"", 0, 3})
	again := write(t, s, putWithMetadata("rex", body(3), `{}`))
	for _, earlier := range []store.Record{both.Record, none.Record} {
		if again.Record.Revision == earlier.Revision {
			t.Errorf("two states have the revision %s", earlier.Revision)
		}
	}
	same(t, "to take none away", write(t, s, putWithMetadata("new", body(1), ``)).Outcome, store.Created)
	same(t, "to take none away again", write(t, s, putWithMetadata("new", body(1), ``)).Outcome, store.Unchanged)

	same(t, "tombstone", metadataOf(write(t, s, del("rex")).Record), storedMetadata{"", 0, 4})
	same(t, "created again", metadataOf(write(t, other, put("rex", body(5))).Record), storedMetadata{"", 0, 5})
	write(t, s, del("rex"))
	same(t, "created again with other metadata", metadataOf(write(t, s, putWithMetadata("rex", body(6), `{}`)).Record), storedMetadata{`{}`, 7, 7})
}

// testMetadataGuards shows that changes of metadata are subject to preconditions.
func testMetadataGuards(t *testing.T, open Open) {
	s, other := open(t)
	before := write(t, s, putWithMetadata("rex", body(1), `{}`)).Record
	write(t, other, putWithMetadata("rex", body(1), `{"labels":{}}`))
	for _, op := range []store.Op{putWithMetadata("rex", body(1), `{"annotations":{}}`), put("rex", body(2)), del("rex")} {
		op.If = store.Precondition{Revision: before.Revision}
		_, err := s.Write(t.Context(), []store.Op{op})
		if refused := new(store.PreconditionError); !errors.As(err, &refused) {
			t.Errorf("write at an old revision: got %v, want a PreconditionError", err)
		}
	}
	op := putWithMetadata("rex", body(1), `{"annotations":{}}`)
	op.If = store.Precondition{UID: "another"}
	if _, err := s.Write(t.Context(), []store.Op{op}); err == nil {
		t.Error("metadata of another record was changed")
	}
	same(t, "what is left", metadataOf(get(t, s, "rex")), storedMetadata{`{"labels":{}}`, 1, 1})
}

// testMetadataRace shows that concurrent writers of metadata and of bodies do not overwrite each
// other.
func testMetadataRace(t *testing.T, open Open) {
	first, second := open(t)
	write(t, first, putWithMetadata("rex", body(0), `0`))
	const rounds = 20
	var group sync.WaitGroup
	group.Go(func() {
		for n := 1; n <= rounds; n++ {
			write(t, first, put("rex", body(n)))
		}
	})
	group.Go(func() {
		for n := range rounds {
			// Like the aggregated API: the body that was read, with new metadata, if the revision is still
			// the same.
			for {
				current := get(t, second, "rex")
				op := putWithMetadata("rex", current.Body, string(rune('a'+n)))
				op.If = store.Precondition{Revision: current.Revision}
				_, err := second.Write(t.Context(), []store.Op{op})
				if err == nil {
					break
				}
				if refused := new(store.PreconditionError); !errors.As(err, &refused) {
					t.Errorf("write metadata: %v", err)
					return
				}
			}
		}
	})
	group.Wait()
	end := get(t, first, "rex")
	same(t, "version, body and metadata in the end", []any{end.Version, counter(t, end), string(end.Metadata)}, []any{int64(rounds + 1), rounds, string(rune('a' + rounds - 1))})
}
