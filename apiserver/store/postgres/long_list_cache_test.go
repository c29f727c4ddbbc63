package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

var newestOkafors = store.Query{
	Types: []string{patient}, Where: store.TextIs{Param: "family", Text: "oka"}, Count: 3, Total: store.TotalNone,
	Sort: []store.Sort{{Field: store.SortCreated, Descending: true}},
}

func numbered(n int) store.Key { return store.Key{Type: patient, ID: fmt.Sprintf("p-%d", n)} }

// eightOkafors is a site with eight records, which are too many for a branch by list.
func eightOkafors(t *testing.T, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	site := open(t, pool, uuid.NewString(), planOptions)
	site.SetPlanLimits(4, 9, 2)
	for n := range 8 {
		op := store.Op{Kind: store.Put, Key: numbered(n), Body: store.Body{JSON: []byte(`{"Texts": {"family": [{"Folded": "okafor"}]}}`)}}
		if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	return site
}

// A list that was too long is not tried for the next page. The search finds all records
// nevertheless, even if the list has changed.
func TestLongLists(t *testing.T) {
	pool, seen := explaining(t)
	site := eightOkafors(t, pool)
	query := newestOkafors
	ask := func(after store.Position, want []string, tries bool) (next store.Position) {
		t.Helper()
		seen.reset()
		query.After = after
		page, err := site.Search(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, record := range page.Records {
			found = append(found, record.Key.ID)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("after %q, found:\n%s", after, diff)
		}
		if tried := strings.Contains(strings.Join(seen.texts, ""), "cardinality"); tried != tries {
			t.Errorf("after %q, a list was tried: %t, want %t", after, tried, tries)
		}
		return page.Next
	}
	next := ask(nil, []string{"p-7", "p-6", "p-5"}, true)
	next = ask(next, []string{"p-4", "p-3", "p-2"}, false)
	ask(next, []string{"p-1", "p-0"}, false)
	for n := 1; n < 8; n++ {
		if _, err := site.Write(t.Context(), []store.Op{{Kind: store.Delete, Key: numbered(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	ask(nil, []string{"p-0"}, false)
}

// A search tries its first list alone, and reads the rest if that list is too long.
func TestFirstListAlone(t *testing.T) {
	const list, rest = "the first list", "the rest"
	descending := store.Sort{Field: store.SortCreated, Descending: true}
	for _, c := range []struct {
		name  string
		sort  store.Sort
		where store.Condition
		first string
	}{
		{"in the order of creation", descending, nil, "p-7"},
		{"in the order of a parameter", store.Sort{Field: store.SortText, Param: "family"}, nil, "p-0"},
		{"with a second condition", store.Sort{Field: store.SortCreated}, store.Not{Condition: store.Present{Param: "given"}}, "p-0"},
		{"before a watermark", descending, store.UpdatedIn{From: time.UnixMilli(1)}, "p-7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool, seen := explaining(t)
			site := eightOkafors(t, pool)
			expect := func(family, want string, sent ...string) {
				t.Helper()
				seen.reset()
				query := store.Query{Types: []string{patient}, Where: store.TextIs{Param: "family", Text: family}, Count: 1, Total: store.TotalNone, Sort: []store.Sort{c.sort}}
				if c.where != nil {
					query.Where = store.All{query.Where, c.where}
				}
				page, err := site.Search(t.Context(), query)
				if err != nil || len(page.Records) != 1 || page.Records[0].Key.ID != want {
					t.Fatalf("family %s: found %v, %v, want %s", family, page.Records, err, want)
				}
				var pages []string
				for _, text := range seen.texts {
					if strings.Contains(text, "SELECT NULL, NULL") {
						pages = append(pages, list)
					} else if strings.Contains(text, "r.body") {
						pages = append(pages, rest)
						if strings.Contains(text, "AS rids FROM (SELECT rid FROM (SELECT x.rid FROM ix_text") {
							t.Errorf("the list of the family %s is tried again: %s", family, text)
						}
					}
				}
				if diff := cmp.Diff(sent, pages); diff != "" {
					t.Errorf("statements for the family %s:\n%s", family, diff)
				}
			}
			expect("o", c.first, list, rest)
			expect("ok", c.first, list, rest)
			expect("ok", c.first, rest) // the list is in the cache
			zeus := store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "zeus"}, Body: store.Body{JSON: []byte(`{"Texts": {"family": [{"Folded": "zeus"}]}}`)}}
			if _, err := site.Write(t.Context(), []store.Op{zeus}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				expect("z", "zeus", list)
			}
		})
	}
}

// A search by time whose list is too long finds the newest records too.
func TestFirstListByTime(t *testing.T) {
	pool, seen := explaining(t)
	site := eightOkafors(t, pool)
	for _, tries := range []bool{true, false} {
		seen.reset()
		query := store.Query{Types: []string{patient}, Where: store.UpdatedIn{From: time.UnixMilli(1)}, Count: 1, Total: store.TotalNone, Sort: newestOkafors.Sort}
		page, err := site.Search(t.Context(), query)
		if err != nil || len(page.Records) != 1 || page.Records[0].Key.ID != "p-7" {
			t.Fatalf("found %v, %v, want p-7", page.Records, err)
		}
		if tried := strings.Contains(strings.Join(seen.texts, ""), "SELECT NULL, NULL"); tried != tries {
			t.Errorf("the list was tried: %t, want %t", tried, tries)
		}
	}
}

// A scan is batched with other queries once its list is known to be long, unless it was slow.
func TestSlowScans(t *testing.T) {
	for _, c := range []struct {
		name    string
		records float64
		slow    bool
		want    bool
	}{
		{"quick", 1_140_000, false, true},
		{"slow", 1_140_000, true, false},
		{"longer than any may be", 1_150_000, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := eightOkafors(t, shared)
			site.SetRecordCount(patient, c.records)
			expectBatched(t, site, false) // the list must be tried first
			search(t, site)
			expectBatched(t, site, c.records < 1_150_000)
			if c.slow {
				searchSlowly(t, site)
			}
			expectBatched(t, site, c.want)
		})
	}
}

func expectBatched(t *testing.T, site *postgres.Store, want bool) {
	t.Helper()
	batched, err := site.IsBatched(t.Context(), newestOkafors)
	if err != nil || batched != want {
		t.Errorf("is batched: %t, %v, want %t", batched, err, want)
	}
}

func search(t *testing.T, site *postgres.Store) {
	t.Helper()
	if _, err := site.Search(t.Context(), newestOkafors); err != nil {
		t.Fatal(err)
	}
}

// searchSlowly makes a search wait for a lock for which nothing else waits.
func searchSlowly(t *testing.T, site *postgres.Store) {
	t.Helper()
	tx, err := shared.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE res IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
			if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'res'::regclass").Scan(&waiting); err != nil {
				t.Error(err)
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	search(t, site)
	<-done
}
