package postgres_test

import (
	"strconv"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestReindexToNothing shows that a record loses its index rows if the new extraction finds nothing
// in it.
func TestReindexToNothing(t *testing.T) {
	key := uuid.NewString()
	older := open(t, shared, key, postgres.Options{Extractor: extractingOthers(func([]byte) []store.IndexValue {
		return []store.IndexValue{{Param: "old", Value: store.Token{Code: "c"}}}
	})})
	if _, err := older.Write(t.Context(), []store.Op{counterOp("bare", 1)}); err != nil {
		t.Fatal(err)
	}
	newer := open(t, shared, key, postgres.Options{Extractor: store.NoExtractor})
	if err := newer.Reindex(t.Context(), store.Key{}, func(postgres.Reindexed) {}); err != nil {
		t.Fatal(err)
	}
	c := "c"
	page, err := newer.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.TokenIs{Param: "old", Code: &c}, Total: store.TotalAccurate})
	if err != nil || page.Total != 0 {
		t.Errorf("%d records found, error %v", page.Total, err)
	}
}

// TestReindex shows that records are found by what the new extraction finds and by nothing else,
// that they keep their versions, and that an interrupted Reindex can resume.
func TestReindex(t *testing.T) {
	key := uuid.NewString()
	older := open(t, shared, key, postgres.Options{Extractor: extractingOthers(func([]byte) []store.IndexValue {
		return []store.IndexValue{{Param: "old", Value: store.Token{Code: "c"}}, {Param: "old", Value: store.Text{Folded: "t"}}}
	})})
	const records = 1200
	for i := range records {
		op := counterOp(strconv.Itoa(i), i)
		if _, err := older.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := older.Write(t.Context(), []store.Op{{Kind: store.Delete, Key: store.Key{Type: patient, ID: "0"}}}); err != nil {
		t.Fatal(err)
	}
	newer := open(t, shared, key, postgres.Options{})
	if _, err := newer.Write(t.Context(), []store.Op{counterOp("7", 7000)}); err != nil {
		t.Fatal(err)
	}
	var first, last postgres.Reindexed
	for range 2 { // the second time there is nothing to do
		last = postgres.Reindexed{}
		err := newer.Reindex(t.Context(), store.Key{}, func(r postgres.Reindexed) {
			if first.Read == 0 {
				first = r
			}
			last = r
		})
		if err != nil {
			t.Fatal(err)
		}
		if last.Read != records {
			t.Errorf("looked at %d records, want %d", last.Read, records)
		}
	}
	if last.Changed != 0 || first.Changed == 0 || first.Read >= records {
		t.Errorf("portions: first %+v, of the second run %+v", first, last)
	}
	if err := newer.Reindex(t.Context(), first.After, func(r postgres.Reindexed) { last = r }); err != nil || last.Read != records-first.Read {
		t.Errorf("resumed behind %v: %+v, %v", first.After, last, err)
	}
	count := func(condition store.Condition) int64 {
		t.Helper()
		page, err := newer.Search(t.Context(), store.Query{Types: []string{patient}, Where: condition, Total: store.TotalAccurate})
		if err != nil {
			t.Fatal(err)
		}
		return page.Total
	}
	c, three := "c", "3"
	for name, test := range map[string]struct {
		condition store.Condition
		want      int64
	}{
		"what the old one found": {store.TokenIs{Param: "old", Code: &c}, 0},
		"texts of the old one":   {store.TextIs{Param: "old", Text: "t"}, 0},
		"present of the old one": {store.Present{Param: "old"}, 0},
		"what the new one finds": {store.TokenIs{Param: "code", Code: &three}, 1},
		"present of the new one": {store.Present{Param: "code"}, records - 1},
	} {
		if got := count(test.condition); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	record, err := newer.Get(t.Context(), store.Key{Type: patient, ID: "3"})
	if err != nil || record.Version != 1 {
		t.Errorf("a reindexed record: %+v, %v", record, err)
	}
}
