package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// version is a historyVersion and the labels that restrict it.
type version struct {
	historyVersion
	// labelled is the version whose labels apply. For a tombstone it is the version before.
	labelled indexedRecord
}

// writeVersions makes random writes. It returns all versions of each record, oldest first, and the
// live records.
func writeVersions(t *testing.T, s store.Store, d dice, writes int) (all map[store.Key][]version, live *truth) {
	t.Helper()
	all = map[store.Key][]version{}
	for range writes {
		k := store.Key{Type: pick(d, recordTypes...), ID: d.id()}
		of := all[k]
		exists := len(of) > 0 && !of[len(of)-1].Deleted
		if exists && d.IntN(3) == 0 {
			deleted := write(t, s, store.Op{Kind: store.Delete, Key: k, Method: store.MethodDelete}).Record
			all[k] = append(of, version{toHistoryVersion(deleted), of[len(of)-1].labelled})
			continue
		}
		v := d.values()
		put := write(t, s, store.Op{Kind: store.Put, Key: k, Method: store.MethodPut, Body: v.body(t)}).Record
		all[k] = append(of, version{toHistoryVersion(put), indexedRecord{put, v}})
	}
	live = &truth{}
	for _, of := range all {
		if newest := of[len(of)-1]; !newest.Deleted {
			live.records = append(live.records, newest.labelled)
		}
	}
	return all, live
}

// testHistoryAccess compares restricted histories of records, types and the site with expected
// versions. A version is expected if its own labels and those of the record's newest live version meet
// the condition of its type.
func testHistoryAccess(t *testing.T, open Open) {
	s, other := open(t)
	d := dice{random()}
	all, live := writeVersions(t, s, d, 300)
	truthful := func(query store.HistoryQuery) map[string]historyVersion {
		want := map[string]historyVersion{}
		q := store.Query{Bases: query.Bases}
		for k, of := range all {
			condition, listed := query.Access[k.Type]
			if !listed || query.Key.Type != "" && query.Key.Type != k.Type || query.Key.ID != "" && query.Key.ID != k.ID ||
				!live.holds(q, of[len(of)-1].labelled, condition) {
				continue
			}
			for _, v := range of {
				if (query.Deletions || !v.Deleted) && live.holds(q, v.labelled, condition) {
					want[v.name()] = v.historyVersion
				}
			}
		}
		return want
	}
	count := int64(0)
	for _, of := range all {
		count += int64(len(of))
	}
	eventually(t, "the other replica to know all", func() bool {
		page, err := other.History(t.Context(), store.HistoryQuery{Deletions: true})
		return err == nil && page.Total == count
	})
	for n := range 300 {
		query := store.HistoryQuery{
			Deletions: d.IntN(2) == 0, Count: pick(d, 1, 7, 1000), Bases: pick(d, nil, []string{ownBase}),
			Access: store.Access{"Patient": d.access(), "Group": d.access()},
		}
		switch d.IntN(3) {
		case 0:
			query.Key.Type = pick(d, recordTypes...)
		case 1:
			query.Key = store.Key{Type: pick(d, recordTypes...), ID: d.id()}
		}
		what := fmt.Sprintf("query %d %+v", n, query)
		want := truthful(query)
		page, err := s.History(t.Context(), query)
		if query.Key.ID != "" && len(want) == 0 {
			if err == nil && len(page.Records) > 0 {
				t.Fatalf("%s: %d versions, want none", what, len(page.Records))
			}
			continue
		}
		same(t, what+": total", page.Total, int64(len(want)))
		got := map[string]historyVersion{}
		for _, v := range allVersions(t, s, query) {
			got[v.name()] = v
		}
		if same(t, what, got, want); t.Failed() {
			return
		}
	}
}

// access returns a random condition that is allowed in HistoryQuery.Access.
func (d dice) access() store.Condition {
	return pick[store.Condition](d, store.All{}, d.hasLabel(), store.Not{Condition: d.hasLabel()}, d.linksTo(),
		store.All{store.Not{Condition: d.hasLabel()}, d.linksTo()}, store.Any{d.hasLabel(), d.linksTo()})
}

// testHiddenHistory shows that the history of a hidden record is ErrNotFound, like that of a record
// that never existed. This also holds after its deletion.
func testHiddenHistory(t *testing.T, open Open) {
	s, _ := open(t)
	secret := values{Tokens: map[string][]store.Token{labelParam: {{Code: "a"}}}}
	hidden := store.HistoryQuery{Key: key("rex"), Count: 10, Deletions: true, Access: store.Access{patient: store.Not{Condition: store.HasLabel("a")}}}
	expectNone := func(when string) {
		t.Helper()
		if _, err := s.History(t.Context(), hidden); err != store.ErrNotFound { //nolint:errorlint // engines return it as it is
			t.Errorf("%s: %v, want ErrNotFound", when, err)
		}
	}
	write(t, s, put("rex", values{Salt: 1}.body(t)))
	same(t, "before the label", len(history(t, s, hidden).Records), 1)
	write(t, s, put("rex", secret.body(t)))
	expectNone("labelled")
	write(t, s, store.Op{Kind: store.Delete, Key: key("rex"), Method: store.MethodDelete})
	expectNone("deleted")
	write(t, s, put("rex", values{Salt: 2}.body(t)))
	versions := []int64{}
	for _, v := range allVersions(t, s, hidden) {
		versions = append(versions, v.Version)
	}
	same(t, "created again without the label", versions, []int64{4, 1})
}

// testApprove shows that a write that Approve refuses changes nothing. Approve gets the version
// that the write would supersede.
func testApprove(t *testing.T, open Open) {
	s, _ := open(t)
	write(t, s, put("rex", values{Salt: 1}.body(t)))
	refusal := fmt.Errorf("not this one")
	for name, op := range map[string]store.Op{
		"a put": put("rex", values{Salt: 2}.body(t)), "a delete": {Kind: store.Delete, Key: key("rex"), Method: store.MethodDelete},
		"a new record": put("luna", values{}.body(t)), "an erasure in other letters": {Kind: store.Purge, Key: key("Rex"), Erase: true},
		"an erasure of no record": {Kind: store.Purge, Key: key("luna"), Erase: true},
	} {
		var seen []int64
		op.If.Approve = func(current *store.Record) error {
			if current != nil {
				seen = append(seen, current.Version)
			}
			return refusal
		}
		_, err := s.Write(t.Context(), []store.Op{op})
		if refused := new(store.RefusedError); !errors.As(err, &refused) || !errors.Is(err, refusal) {
			t.Errorf("%s: %v, want the refusal", name, err)
		}
		if strings.EqualFold(op.Key.ID, "rex") && (len(seen) == 0 || seen[len(seen)-1] != 1) {
			t.Errorf("%s: decided on the versions %v, want 1", name, seen)
		}
	}
	same(t, "the version", get(t, s, "rex").Version, int64(1))
	allowed := put("rex", values{Salt: 3}.body(t))
	allowed.If.Approve = func(*store.Record) error { return nil }
	same(t, "an approved put", write(t, s, allowed).Record.Version, int64(2))
}
