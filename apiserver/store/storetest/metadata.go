package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// beside is a put with metadata.
func beside(id string, b store.Body, metadata string) store.Op {
	op := put(id, b)
	op.Metadata = []byte(metadata)
	return op
}

// kept is what a record has beside it.
type kept struct {
	Metadata           string
	Written, OfVersion int64
}

func keptBy(r store.Record) kept { return kept{string(r.Metadata), r.MetadataVersion, r.Version} }

func testMetadata(t *testing.T, open Open) {
	s, other := open(t)
	created := write(t, s, beside("rex", body(1), `{"labels":{"a":"<ü>"}}`)).Record
	same(t, "created", keptBy(created), kept{`{"labels":{"a":"<ü>"}}`, 1, 1})
	same(t, "read", get(t, other, "rex"), created)

	updated := write(t, s, put("rex", body(2))).Record
	same(t, "a put that does not say leaves it", keptBy(updated), kept{`{"labels":{"a":"<ü>"}}`, 1, 2})
	same(t, "to put the same again", write(t, s, beside("rex", body(2), `{"labels":{"a":"<ü>"}}`)).Outcome, store.Unchanged)

	annotated := write(t, s, beside("rex", body(2), `{"labels":{"b":"2"}}`))
	same(t, "outcome of a change of metadata alone", annotated.Outcome, store.Updated)
	same(t, "changed", keptBy(annotated.Record), kept{`{"labels":{"b":"2"}}`, 2, 2})
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
	same(t, "an older version in the history", keptBy(page.Records[1]), kept{"", 0, 1})
	newest, err := other.GetVersion(t.Context(), key("rex"), 2)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the newest version by number", newest, annotated.Record)

	both := write(t, other, beside("rex", body(3), `{"labels":{"c":"3"}}`))
	same(t, "body and metadata at once", keptBy(both.Record), kept{`{"labels":{"c":"3"}}`, 3, 3})
	none := write(t, s, beside("rex", body(3), ``))
	same(t, "taken away", keptBy(none.Record), kept{"", 0, 3})
	again := write(t, s, beside("rex", body(3), `{}`))
	for _, earlier := range []store.Record{both.Record, none.Record} {
		if again.Record.Revision == earlier.Revision {
			t.Errorf("the revision %s is told twice", earlier.Revision)
		}
	}
	same(t, "to take none away", write(t, s, beside("new", body(1), ``)).Outcome, store.Created)
	same(t, "to take none away again", write(t, s, beside("new", body(1), ``)).Outcome, store.Unchanged)

	same(t, "tombstone", keptBy(write(t, s, del("rex")).Record), kept{"", 0, 4})
	same(t, "created again", keptBy(write(t, other, put("rex", body(5))).Record), kept{"", 0, 5})
	write(t, s, del("rex"))
	same(t, "created again with other metadata", keptBy(write(t, s, beside("rex", body(6), `{}`)).Record), kept{`{}`, 7, 7})
}

// testMetadataGuards holds changes of metadata to revisions.
func testMetadataGuards(t *testing.T, open Open) {
	s, other := open(t)
	before := write(t, s, beside("rex", body(1), `{}`)).Record
	write(t, other, beside("rex", body(1), `{"labels":{}}`))
	for _, op := range []store.Op{beside("rex", body(1), `{"annotations":{}}`), put("rex", body(2)), del("rex")} {
		op.If = store.Precondition{Revision: before.Revision}
		_, err := s.Write(t.Context(), []store.Op{op})
		if refused := new(store.PreconditionError); !errors.As(err, &refused) {
			t.Errorf("write at an old revision: got %v, want a PreconditionError", err)
		}
	}
	op := beside("rex", body(1), `{"annotations":{}}`)
	op.If = store.Precondition{UID: "another"}
	if _, err := s.Write(t.Context(), []store.Op{op}); err == nil {
		t.Error("metadata of another record was changed")
	}
	same(t, "what is left", keptBy(get(t, s, "rex")), kept{`{"labels":{}}`, 1, 1})
}

// testMetadataRace lets writers of metadata meet writers of bodies: none loses what the
// other did.
func testMetadataRace(t *testing.T, open Open) {
	first, second := open(t)
	write(t, first, beside("rex", body(0), `0`))
	const rounds = 20
	var group sync.WaitGroup
	group.Go(func() {
		for n := 1; n <= rounds; n++ {
			write(t, first, put("rex", body(n)))
		}
	})
	group.Go(func() {
		for n := range rounds {
			// As the API does: what is there, with other metadata, if nobody was quicker.
			for {
				current := get(t, second, "rex")
				op := beside("rex", current.Body, string(rune('a'+n)))
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
