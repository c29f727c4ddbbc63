package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/store"
)

const organization = "Organization"

func org(id string) store.Key { return store.Key{Type: organization, ID: id} }

// referring returns a put of a record that refers to other records and requires them.
func referring(t *testing.T, from store.Key, salt int, to ...store.Key) store.Op {
	v := values{Salt: salt, Refs: map[string][]store.Reference{}}
	for _, key := range to {
		v.Refs["owner"] = append(v.Refs["owner"], store.Reference{Type: key.Type, ID: key.ID})
	}
	return store.Op{Kind: store.Put, Key: from, Method: store.MethodPut, Body: v.body(t), Requires: to}
}

// removing returns a delete that fails if a record refers to the deleted one.
func removing(key store.Key) store.Op {
	return store.Op{Kind: store.Delete, Key: key, Method: store.MethodDelete, Unreferenced: true, Bases: []string{ownBase}}
}

// atomicStores opens a site. If its engine is not atomic, atomicStores checks that the engine
// refuses operations that depend on other records, and returns false for ok.
func atomicStores(t *testing.T, open Open) (first, second store.Store, ok bool) {
	t.Helper()
	first, second = open(t)
	if first.Atomic() {
		return first, second, true
	}
	for _, op := range []store.Op{referring(t, key("a"), 0, org("o")), removing(org("o"))} {
		_, err := first.Write(t.Context(), []store.Op{op})
		if !errors.Is(err, store.ErrNotAtomic) {
			t.Errorf("a store that is not atomic answers %v, want ErrNotAtomic", err)
		}
	}
	same(t, "records after refused writes", allIDs(t, first, store.Query{Types: []string{patient, organization}, Count: 10}), []string{})
	return nil, nil, false
}

// refused checks that a write fails with the error and changes nothing.
func refused(t *testing.T, s store.Store, want error, ops ...store.Op) {
	t.Helper()
	query := store.Query{Types: []string{patient, organization}, Count: 100, Sort: []store.Sort{{Field: store.SortID}}}
	before := allRecords(t, s, query)
	_, err := s.Write(t.Context(), ops)
	ordered := cmpopts.SortSlices(func(a, b store.Key) bool { return a.ID < b.ID })
	if diff := cmp.Diff(want, err, ordered); diff != "" {
		t.Errorf("write of %v and so on (-want +got):\n%s", ops[0].Key, diff)
	}
	same(t, "records after a refused write", allRecords(t, s, query), before)
}

func writeAll(t *testing.T, s store.Store, ops ...store.Op) {
	t.Helper()
	if _, err := s.Write(t.Context(), ops); err != nil {
		t.Fatalf("write %v and so on: %v", ops[0].Key, err)
	}
}

func missing(from store.Key, to ...store.Key) error {
	return &store.MissingReferenceError{Key: from, Missing: to}
}

func testRequired(t *testing.T, open Open) {
	s, other, ok := atomicStores(t, open)
	if !ok {
		return
	}
	refused(t, s, missing(key("a"), org("o")), referring(t, key("a"), 0, org("o")))
	writeAll(t, s, referring(t, org("o"), 0), referring(t, org("Upper"), 0))
	refused(t, other, missing(key("a"), org("p"), org("q")), referring(t, key("a"), 0, org("p"), org("o"), org("q")))
	unseen := referring(t, key("a"), 0, org("Upper"), org("o"))
	unseen.Unseen = []store.Key{org("o")}
	refused(t, other, missing(key("a"), org("o")), unseen)
	writeAll(t, other, referring(t, key("a"), 0, org("O"), org("upper")))
	writeAll(t, s, removing(key("a")))
	refused(t, s, missing(org("o"), key("a")), referring(t, org("o"), 1, key("a"))) // a tombstone is not live

	writeAll(t, s, referring(t, key("me"), 0, key("ME")))
	conditional := referring(t, key("gone"), 0, org("p"))
	conditional.If.Version = 3
	refused(t, s, &store.PreconditionError{Key: key("gone")}, conditional) // the precondition is checked first
	writeAll(t, s, referring(t, key("b"), 0))
	refused(t, other, missing(key("b"), org("p")), referring(t, key("b"), 0, org("p")))
}

func testUnreferenced(t *testing.T, open Open) {
	s, other, ok := atomicStores(t, open)
	if !ok {
		return
	}
	writeAll(t, s, removing(org("never")))
	writeAll(t, s, referring(t, org("o"), 0), referring(t, org("free"), 0), referring(t, key("me"), 0, key("me")))
	writeAll(t, other, referring(t, key("Rex"), 0, org("o")), referring(t, key("luna"), 0, org("O")), referring(t, key("free"), 0, org("free")))
	refused(t, s, &store.ReferencedError{Key: org("O"), By: []store.Key{key("luna"), key("Rex")}}, removing(org("O")))
	purge := removing(org("o"))
	purge.Kind = store.Purge
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("luna"), key("Rex")}}, purge)

	writeAll(t, s, referring(t, key("rex"), 1, org("free")))
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("luna")}}, removing(org("o")))
	writeAll(t, s, removing(key("luna")))
	writeAll(t, other, removing(org("o")))
	writeAll(t, other, removing(org("o"))) // no change the second time
	writeAll(t, s, removing(key("me")))    // a reference to itself does not count
	refused(t, other, missing(key("new"), org("o")), referring(t, key("new"), 0, org("o")))

	writeAll(t, s, referring(t, org("O"), 1))
	writeAll(t, s, referring(t, key("new"), 0, org("o")))
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("new")}}, removing(org("o")))
	plain := removing(org("o"))
	plain.Unreferenced = false
	writeAll(t, s, plain)
}

// testMentions tests removals of a record with mentions, with references by other base URLs, and
// with more referring records than an error names.
func testMentions(t *testing.T, open Open) {
	s, _, ok := atomicStores(t, open)
	if !ok {
		return
	}
	put := func(id string, v values) { writeAll(t, s, store.Op{Kind: store.Put, Key: key(id), Body: v.body(t)}) }
	writeAll(t, s, referring(t, org("o"), 0))
	put("mentions", values{Mentions: []store.Mention{{Type: organization, ID: "o"}}})
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("mentions")}}, removing(org("o")))
	same(t, "records found by a mention", allIDs(t, s, store.Query{Types: patients, Count: 10, Where: store.Chain{Type: organization, Where: store.All{}}}), []string{})
	included := search(t, s, store.Query{Types: patients, Count: 10, MaxIncluded: 10, Includes: []store.Include{{}, {Reverse: true}}})
	same(t, "records included by a mention", len(included.Included), 0)

	put("mentions", values{Mentions: []store.Mention{{Base: ownBase, Type: organization, ID: "o"}}})
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("mentions")}}, removing(org("o")))
	put("mentions", values{Mentions: []store.Mention{{Base: otherBase, Type: organization, ID: "o"}}})
	put("refers", values{Refs: map[string][]store.Reference{"owner": {{Base: otherBase, Type: organization, ID: "o"}, {Base: ownBase, Type: organization, ID: "o"}}}})
	refused(t, s, &store.ReferencedError{Key: org("o"), By: []store.Key{key("refers")}}, removing(org("o")))
	put("refers", values{Refs: map[string][]store.Reference{"owner": {{Base: otherBase, Type: organization, ID: "o"}, {Type: patient, ID: "o"}}}})

	var most []store.Key
	for i := range 25 {
		id := fmt.Sprintf("p%02d", i)
		put(id, values{Mentions: []store.Mention{{Type: organization, ID: "o"}}, Refs: map[string][]store.Reference{"owner": {{Type: organization, ID: "o"}}}})
		if i < 10 {
			most = append(most, key(id))
		}
	}
	writeAll(t, s, store.Op{Kind: store.Put, Key: org("child"), Body: values{Mentions: []store.Mention{{Type: organization, ID: "o"}}}.body(t)})
	refused(t, s, &store.ReferencedError{Key: org("o"), By: append([]store.Key{org("child")}, most...), More: true}, removing(org("o")))
	for _, r := range allRecords(t, s, store.Query{Types: []string{patient, organization}, Count: 10}) {
		if r.Key != org("o") {
			writeAll(t, s, store.Op{Kind: store.Delete, Key: r.Key})
		}
	}
	writeAll(t, s, removing(org("o")))
}

// testHiddenReferrers shows that a ReferencedError names and counts as if hidden referring records
// did not exist.
func testHiddenReferrers(t *testing.T, open Open) {
	s, _, ok := atomicStores(t, open)
	if !ok {
		return
	}
	restricted := removing(org("o"))
	restricted.Referrers = func(recordType string) (store.Condition, error) {
		if recordType != patient {
			return store.All{}, nil
		}
		visible := store.LinksTo{Param: linkParam, Type: organization, Where: store.Not{Condition: store.HasLabel("hidden")}}
		return store.All{store.Not{Condition: store.HasLabel("hidden")}, visible}, nil
	}
	put := func(from store.Key, label string, to ...store.Key) {
		v := values{Tokens: map[string][]store.Token{labelParam: {{Code: label}}}, Refs: map[string][]store.Reference{}}
		for _, key := range to {
			v.Refs[linkParam] = append(v.Refs[linkParam], store.Reference{Type: key.Type, ID: key.ID})
		}
		writeAll(t, s, store.Op{Kind: store.Put, Key: from, Body: v.body(t)})
	}
	put(org("o"), "shown")
	put(org("secret"), "hidden")
	var visible []store.Key
	for i := range 12 {
		put(key(fmt.Sprintf("h%02d", i)), "hidden", org("o"))
	}
	refused(t, s, &store.ReferencedError{Key: org("o"), More: true}, restricted)
	for i := range 9 {
		visible = append(visible, key(fmt.Sprintf("v%02d", i)))
		put(visible[i], "shown", org("o"))
	}
	put(key("linked"), "shown", org("o"), org("secret"))
	refused(t, s, &store.ReferencedError{Key: org("o"), By: visible}, restricted)
	for i := 9; i < 11; i++ {
		put(key(fmt.Sprintf("v%02d", i)), "shown", org("o"))
	}
	put(org("child"), "hidden", org("o")) // Referrers allows all records of this type
	refused(t, s, &store.ReferencedError{Key: org("o"), By: append(visible, key("v09"), org("child")), More: true}, restricted)
}

func testReferencesInOneWrite(t *testing.T, open Open) {
	s, other, ok := atomicStores(t, open)
	if !ok {
		return
	}
	circle := []store.Op{referring(t, key("a"), 0, org("b"), key("A")), referring(t, org("b"), 0, key("a"))}
	writeAll(t, s, circle...)
	refused(t, s, &store.ReferencedError{Key: org("b"), By: []store.Key{key("a")}}, removing(org("b")))
	refused(t, other, missing(key("c"), org("b")), referring(t, key("c"), 0, org("b")), removing(org("b")), removing(key("a")))
	unaware := referring(t, key("a"), 1, org("b"))
	unaware.Requires = nil
	refused(t, other, &store.ReferencedError{Key: org("b"), By: []store.Key{key("a")}}, unaware, removing(org("b")))

	writeAll(t, s, removing(org("b")), referring(t, key("a"), 2)) // the same write drops the reference
	writeAll(t, s, circle...)
	writeAll(t, other, removing(org("b")), removing(key("a")))
	writeAll(t, s, circle...)
	refused(t, other, missing(org("new"), key("nobody")), referring(t, key("a"), 3), removing(org("b")), referring(t, org("new"), 0, key("a"), key("nobody")))
	writeAll(t, other, removing(key("a")), referring(t, org("b"), 4, org("new")), referring(t, org("new"), 0, org("b")))
}

func testReferencesRace(t *testing.T, open Open) {
	s, other, ok := atomicStores(t, open)
	if !ok {
		return
	}
	for round := range 64 {
		target, referrer := org(fmt.Sprintf("o%d", round)), key(fmt.Sprintf("r%d", round))
		writeAll(t, s, referring(t, target, 0))
		ops := []store.Op{referring(t, referrer, 0, target), removing(target)}
		errs := race(2, []store.Store{s, other}, func(i int, s store.Store) error {
			_, err := s.Write(t.Context(), []store.Op{ops[(i+round)%2]})
			return err
		})
		if round%2 == 1 {
			slices.Reverse(errs)
		}
		checkOneOf(t, s, target, referrer, errs[0], errs[1])
	}
}

// checkOneOf checks that either the reference was written or the target was removed.
func checkOneOf(t *testing.T, s store.Store, target, referrer store.Key, referring, removing error) {
	t.Helper()
	var missing *store.MissingReferenceError
	var referenced *store.ReferencedError
	_, targetErr := s.Get(t.Context(), target)
	_, referrerErr := s.Get(t.Context(), referrer)
	switch {
	case referring == nil && errors.As(removing, &referenced) && targetErr == nil && referrerErr == nil:
	case errors.As(referring, &missing) && removing == nil && targetErr != nil && referrerErr != nil:
	default:
		t.Fatalf("reference: %v, removal: %v; afterwards, target: %v, referrer: %v", referring, removing, targetErr, referrerErr)
	}
}

// testCircleRace lets writers make, change and remove records that refer to each other. No write
// deadlocks, and no reference dangles in the end.
func testCircleRace(t *testing.T, open Open) {
	s, other, ok := atomicStores(t, open)
	if !ok {
		return
	}
	const records = 4
	ids := make([]store.Key, records)
	for i := range ids {
		ids[i] = key(fmt.Sprintf("c%d", i))
		writeAll(t, s, referring(t, ids[i], 0))
	}
	var refused atomic.Int64
	errs := race(8, []store.Store{s, other}, func(i int, s store.Store) error {
		for n := range 24 {
			from, to, third := ids[(i+n)%records], ids[(i*3+n*2+1)%records], ids[(i+n*5+2)%records]
			ops := []store.Op{referring(t, from, i*100+n, to, third)}
			switch n % 4 {
			case 1:
				ops = []store.Op{removing(from)}
			case 2:
				ops = []store.Op{referring(t, from, i*100+n)}
			case 3:
				if from != to {
					ops = append(ops, referring(t, to, i*100+n, from))
				}
			}
			_, err := s.Write(t.Context(), ops)
			var missing *store.MissingReferenceError
			var referenced *store.ReferencedError
			if errors.As(err, &missing) || errors.As(err, &referenced) {
				refused.Add(1)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Errorf("a writer got %v", err)
		}
	}
	if refused.Load() == 0 {
		t.Error("nothing was refused")
	}
	truth := newTruth(allRecords(t, s, store.Query{Types: patients, Count: 10}))
	for _, r := range truth.records {
		for _, to := range r.values.Refs["owner"] {
			if _, err := s.Get(t.Context(), store.Key{Type: to.Type, ID: to.ID}); err != nil {
				t.Errorf("%v refers to %v: %v", r.Key, to, err)
			}
		}
	}
}
