package postgres_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

const organization = "Organization"

// largeRecords is a site with records of two types, most of them longer than usual. Some compress
// well, some do not. Each belongs to one of ten organizations.
func largeRecords(t *testing.T) *postgres.Store {
	t.Helper()
	site := open(t, shared, uuid.NewString(), planOptions)
	random := rand.NewChaCha8([32]byte{})
	for n := range 60 {
		noise := make([]byte, n%7*200)
		_, _ = random.Read(noise) // never fails
		padding := hex.EncodeToString(noise)
		if n%3 == 0 {
			padding = strings.Repeat("a", n%7*400)
		}
		key := store.Key{Type: []string{patient, organization}[n%2], ID: fmt.Sprintf("r-%d", n)}
		body := fmt.Sprintf(`{"Texts":{"family":[{"Folded":"f%02d"}]},"Refs":{"organization":[{"Type":"Organization","ID":"r-%d"}]},"padding":%q}`, n*7%60, n%5*2+1, padding)
		for version := range 1 + n%2 {
			sized := strings.Replace(body, "padding", "padding"+strings.Repeat("g", version), 1)
			if _, err := site.Write(t.Context(), []store.Op{{Kind: store.Put, Key: key, Body: store.Body{JSON: []byte(sized)}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return site
}

// A page ends at its maximum size in bytes, and the next page continues there.
func TestLargePages(t *testing.T) {
	t.Parallel()
	const most = 3000
	site := largeRecords(t)
	names := func(records []store.Record) []string {
		ids := make([]string, len(records))
		for i, record := range records {
			ids[i] = fmt.Sprintf("%s/%d", record.Key.ID, record.Version)
		}
		return ids
	}
	byFamily := []store.Sort{{Field: store.SortText, Param: "family"}}
	newestFirst := []store.Sort{{Field: store.SortCreated, Descending: true}}
	search := func(query store.Query) func(context.Context, int, store.Position) (store.Page, error) {
		query.Total = store.TotalNone
		return func(ctx context.Context, count int, after store.Position) (store.Page, error) {
			query.Count, query.After = count, after
			return site.Search(ctx, query)
		}
	}
	history := func(query store.HistoryQuery) func(context.Context, int, store.Position) (store.Page, error) {
		return func(ctx context.Context, count int, after store.Position) (store.Page, error) {
			query.Count, query.After, query.Deletions = count, after, true
			return site.History(ctx, query)
		}
	}
	for name, read := range map[string]func(context.Context, int, store.Position) (store.Page, error){
		"newest":                  search(store.Query{Types: []string{patient}, Sort: newestFirst}),
		"of two types":            search(store.Query{Types: []string{patient, organization}}),
		"of two types, newest":    search(store.Query{Types: []string{patient, organization}, Sort: newestFirst}),
		"by a text":               search(store.Query{Types: []string{patient}, Sort: byFamily}),
		"by a text, of two types": search(store.Query{Types: []string{patient, organization}, Sort: byFamily}),
		"of a filter":             search(store.Query{Types: []string{patient}, Where: store.TextIs{Param: "family", Text: "f"}, Sort: newestFirst}),
		"history of a type":       history(store.HistoryQuery{Key: store.Key{Type: patient}}),
		"history of all":          history(store.HistoryQuery{}),
		"history of one":          history(store.HistoryQuery{Key: store.Key{Type: organization, ID: "r-55"}}),
	} {
		t.Run(name, func(t *testing.T) {
			site.SetMaxPageBytes(1 << 30)
			all, err := read(t.Context(), 500, nil)
			if err != nil || all.Next != nil {
				t.Fatal(err, all.Next)
			}
			site.SetMaxPageBytes(most)
			var found []store.Record
			pages := 0
			for after := store.Position(nil); pages == 0 || after != nil; pages++ {
				page, err := read(t.Context(), 15, after)
				if err != nil {
					t.Fatal(err)
				}
				size := 0
				for _, record := range page.Records {
					size += len(record.Body.JSON)
				}
				if len(page.Records) == 0 || len(page.Records) > 1 && size > most || len(page.Records) > 15 {
					t.Fatalf("a page has %d records of %d bytes", len(page.Records), size)
				}
				found, after = append(found, page.Records...), page.Next
			}
			if diff := cmp.Diff(names(all.Records), names(found)); diff != "" || pages < 2 {
				t.Errorf("in %d pages (-one +many):\n%s", pages, diff)
			}
		})
	}
	t.Run("included", func(t *testing.T) {
		query := store.Query{
			Types: []string{patient}, Count: 15, Total: store.TotalNone, MaxIncluded: 100,
			Includes: []store.Include{{Type: patient, Param: "organization"}},
		}
		for _, test := range []struct {
			most int
			cut  bool
		}{{1 << 30, false}, {2000, true}} {
			site.SetMaxPageBytes(test.most)
			page, err := site.Search(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, record := range page.Included {
				size += len(record.Body.JSON)
			}
			if page.IncludedCut != test.cut || size > test.most {
				t.Errorf("%d are included, of %d bytes and at most %d; cut: %t", len(page.Included), size, test.most, page.IncludedCut)
			}
		}
	})
}
