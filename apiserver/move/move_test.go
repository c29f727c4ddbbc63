package move_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/move"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
)

// site is one of the two storages of a move.
type site struct {
	*postgres.Store
	t *testing.T
}

func open(t *testing.T) site {
	t.Helper()
	s, err := postgres.Open(t.Context(), pool, uuid.NewString(), postgres.Options{Extractor: storetest.Extractor{}, QueryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return site{s, t}
}

func key(id string) store.Key { return store.Key{Type: "Patient", ID: id} }

func (s site) put(id string, n int) {
	s.t.Helper()
	s.write(store.Op{Kind: store.Put, Key: key(id), Body: store.Body{JSON: fmt.Appendf(nil, `{"Salt":%d}`, n)}})
}

// claim puts a record with a claim that only one record can hold. unclaim removes the claims of a record.
func (s site) claim(id string) { s.claims(id, []store.Claim{{Line: "line"}}) }

func (s site) unclaim(id string) { s.claims(id, []store.Claim{}) }

func (s site) claims(id string, claims []store.Claim) {
	s.t.Helper()
	s.write(store.Op{Kind: store.Put, Key: key(id), Body: store.Body{JSON: fmt.Appendf(nil, `{"Salt":%d}`, len(claims))}, Claims: claims})
}

func (s site) write(op store.Op) {
	s.t.Helper()
	if _, err := s.Write(s.t.Context(), []store.Op{op}); err != nil {
		s.t.Fatal(err)
	}
}

// plant changes rows of the site, past the engine.
func (s site) plant(sql string) {
	s.t.Helper()
	done, err := pool.Exec(s.t.Context(), sql, s.Number())
	if err != nil || done.RowsAffected() == 0 {
		s.t.Fatalf("%s: %d rows, %v", sql, done.RowsAffected(), err)
	}
}

// all returns all records with all versions.
func (s site) all() []store.Dumped {
	s.t.Helper()
	page, err := s.Dump(s.t.Context(), store.DumpQuery{MaxRecords: 1000, MaxBytes: 1 << 20})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Records
}

// faults are what a copy can do wrong to the records of fill in the target.
var faults = map[string]func(source, target site){
	"a record is lost":        func(_, target site) { target.plant(`DELETE FROM res WHERE site = $1 AND id = 'p-3'`) },
	"a record is stale":       func(source, _ site) { source.put("p-3", 99) },
	"a record is too many":    func(_, target site) { target.put("extra", 1) },
	"a record is purged":      func(source, _ site) { source.write(store.Op{Kind: store.Purge, Key: key("p-3")}) },
	"a tombstone is purged":   func(source, _ site) { source.write(store.Op{Kind: store.Purge, Key: key("gone")}) },
	"a record is deleted":     func(source, _ site) { source.write(store.Op{Kind: store.Delete, Key: key("p-3")}) },
	"a record is newer":       func(_, target site) { target.put("p-3", 77) },
	"a record is another one": func(_, target site) { target.plant(`UPDATE res SET upd = upd - 1 WHERE site = $1 AND id = 'p-3'`) },
	"labels are lost": func(source, _ site) {
		source.write(store.Op{Kind: store.Put, Key: key("p-3"), Body: store.Body{JSON: []byte(`{"Salt":3}`)}, Metadata: []byte(`{}`)})
	},
	"nothing is wrong":           func(_, _ site) {},
	"a version is lost":          func(_, target site) { target.plant(`DELETE FROM hist WHERE site = $1 AND ver = 2`) },
	"all past versions are lost": func(_, target site) { target.plant(`DELETE FROM hist WHERE site = $1`) },
	"the source drops a version": func(source, _ site) { source.plant(`DELETE FROM hist WHERE site = $1 AND ver = 1`) },
	"a record gets many versions": func(source, _ site) {
		for n := range 20 {
			source.put("p-5", 100+n)
		}
	},
}

// unlogged are the faults that only a comparison of all records finds: they do not change the table of the
// newest versions.
var unlogged = map[string]bool{"a version is lost": true, "all past versions are lost": true}

// keptLonger are the faults after which the target may have more versions than the source.
var keptLonger = map[string]bool{"the source drops a version": true}

// TestRun shows that a pass finds and repairs whatever is wrong in the target, and that a pass of changed
// records does so with what has changed since the marks.
func TestRun(t *testing.T) {
	for what, fault := range faults {
		for _, after := range []string{"before a pass of all records", "after it"} {
			if after == "after it" && unlogged[what] {
				continue
			}
			t.Run(what+" "+after, func(t *testing.T) {
				source, target := open(t), open(t)
				for n := range 10 {
					source.put(fmt.Sprintf("p-%d", n), n)
				}
				for n := range 4 {
					source.put("many", n)
				}
				source.put("gone", 1)
				source.write(store.Op{Kind: store.Delete, Key: key("gone")})
				copier := &move.Copier{Source: source, Target: target, Report: func(move.Pass) {}}
				pass := func() move.Pass {
					t.Helper()
					pass, err := copier.Run(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return pass
				}
				if copied := pass().Copied; copied != 12 {
					t.Fatalf("the first pass copied %d records, want 12", copied)
				}
				if err := copier.LogChanges(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					for _, s := range []site{source, target} {
						if err := s.DropChanges(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					}
				})
				if after != "after it" {
					fault(source, target)
				}
				marks, err := copier.Mark(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				last := pass()
				if changed, want := last.Changed() > 0, what != "nothing is wrong" && !keptLonger[what]; after != "after it" && changed != want {
					t.Errorf("the pass of all records found a difference: %t, want %t", changed, want)
				}
				if after == "after it" {
					fault(source, target)
				}
				passes := 0
				for passes = 1; passes < 5; passes++ {
					if last, marks, err = copier.RunChanged(t.Context(), marks); err != nil {
						t.Fatal(err)
					}
					if last.Changed() == 0 {
						break
					}
				}
				if last.Changed() != 0 || last.Compared > 1 && after == "after it" {
					t.Errorf("pass %d of changed records compared %d and changed %d, want at most 1 and 0", passes, last.Compared, last.Changed())
				}
				if diff := cmp.Diff(source.all(), target.all()); diff != "" && !keptLonger[what] {
					t.Errorf("the target differs (-source +target):\n%s", diff)
				}
				counts, err := source.Count(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got, err := target.Count(t.Context()); err != nil || got != counts {
					t.Errorf("records of the target: got %v, %v; want %v", got, err, counts)
				}
			})
		}
	}
}

// TestRunCopiesNewVersionsOnly shows that versions that the target has are not read again.
func TestRunCopiesNewVersionsOnly(t *testing.T) {
	source, target := open(t), open(t)
	for n := range 5 {
		source.put("many", n)
	}
	counted := &counting{site: source}
	copier := &move.Copier{Source: counted, Target: target, Report: func(move.Pass) {}}
	for _, want := range []int{5, 3} { // with the newest one that the target has
		counted.versions = 0
		if _, err := copier.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if counted.versions != want {
			t.Errorf("read %d versions, want %d", counted.versions, want)
		}
		source.put("many", 100)
		source.put("many", 101)
	}
}

// TestRunChangedMissesNothing shows that a record which changes while a pass of changed records runs is
// compared by the next one.
func TestRunChangedMissesNothing(t *testing.T) {
	source, target := open(t), open(t)
	source.put("a", 1)
	copier := &move.Copier{Source: source, Target: target, Report: func(move.Pass) { source.put("a", 2) }}
	if err := copier.LogChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	marks, err := copier.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, marks, err = copier.RunChanged(t.Context(), marks); err != nil {
		t.Fatal(err)
	}
	copier.Report = func(move.Pass) {}
	if pass, _, err := copier.RunChanged(t.Context(), marks); err != nil || pass.Copied != 1 {
		t.Errorf("the record that changed meanwhile: copied %d, %v; want 1", pass.Copied, err)
	}
	for _, s := range []site{source, target} {
		if err := s.DropChanges(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestRunErases shows that the target loses the events about a record that was purged in the source, also
// if its id has been used again, and keeps those about a record that it lacks for another reason.
func TestRunErases(t *testing.T) {
	purge := store.Op{Kind: store.Purge, Key: key("p"), Erase: true}
	for what, test := range map[string]struct {
		change func(source, target site)
		kept   int
	}{
		"purged":                           {func(source, _ site) { source.write(purge) }, 0},
		"purged, created again":            {func(source, _ site) { source.write(purge); source.put("p", 1) }, 0},
		"purged, created with as many":     {func(source, _ site) { source.write(purge); source.put("p", 2); source.put("p", 3) }, 0},
		"purged, created with more":        {func(source, _ site) { source.write(purge); source.put("p", 1); source.put("p", 2); source.put("p", 3) }, 0},
		"purged, the claim taken":          {func(source, _ site) { source.write(purge); source.claim("a") }, 0},
		"purged, created, the claim taken": {func(source, _ site) { source.write(purge); source.claim("a"); source.put("p", 1) }, 0},
		"the claim taken":                  {func(source, _ site) { source.put("p", 9); source.unclaim("p"); source.claim("a") }, 1},
		"changed":                          {func(source, _ site) { source.put("p", 9) }, 1},
		"deleted, created again": {func(source, _ site) {
			source.write(store.Op{Kind: store.Delete, Key: key("p")})
			source.put("p", 9)
		}, 1},
		"a version is lost": {func(_, target site) { target.plant(`DELETE FROM hist WHERE site = $1`) }, 1},
		"a record is newer": {func(_, target site) { target.put("p", 9) }, 1},
	} {
		t.Run(what, func(t *testing.T) {
			source, target := open(t), open(t)
			source.claim("p")
			source.put("p", 2)
			copier := &move.Copier{Source: source, Target: target, Report: func(move.Pass) {}}
			if _, err := copier.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			event := store.Event{ID: "e", Type: "user.created", Subject: "Patient/p", Targets: []string{"w"}, Envelope: store.Envelope{JSON: []byte(`{"sequence":}`), SequenceOffset: 12}}
			target.write(store.Op{Kind: store.Put, Key: key("of-event"), Body: store.Body{JSON: []byte(`{}`)}, Events: func(store.Change) []store.Event { return []store.Event{event} }})
			test.change(source, target)
			if _, err := copier.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(source.all(), target.all()); diff != "" {
				t.Errorf("the target differs (-source +target):\n%s", diff)
			}
			var kept int
			if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE site = $1`, target.Number()).Scan(&kept); err != nil || kept != test.kept {
				t.Errorf("the target has %d events, %v; want %d", kept, err, test.kept)
			}
		})
	}
}

// counting counts the versions that are dumped, heads aside.
type counting struct {
	site
	versions int
}

func (c *counting) Dump(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	page, err := c.site.Dump(ctx, query)
	for i := range page.Records {
		if !query.Heads {
			c.versions += len(page.Records[i].Versions)
		}
	}
	return page, err
}
