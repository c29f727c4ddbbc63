package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// A list that was too long is not tried for the next page, and what it has become since is
// found all the same.
func TestLongLists(t *testing.T) {
	pool, seen := explaining(t)
	site := open(t, pool, uuid.NewString(), planOptions)
	site.SetBounds(4, 9, 2, 2)
	key := func(n int) store.Key { return store.Key{Type: patient, ID: fmt.Sprintf("p-%d", n)} }
	for n := range 8 {
		op := store.Op{Kind: store.Put, Key: key(n), Body: store.Body{JSON: []byte(`{"Texts": {"family": [{"Folded": "okafor"}]}}`)}}
		if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	query := store.Query{
		Types: []string{patient}, Where: store.TextIs{Param: "family", Text: "oka"}, Count: 3, Total: store.TotalNone,
		Sort: []store.Sort{{Field: store.SortCreated, Descending: true}},
	}
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
		if _, err := site.Write(t.Context(), []store.Op{{Kind: store.Delete, Key: key(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	ask(nil, []string{"p-0"}, false)
}
