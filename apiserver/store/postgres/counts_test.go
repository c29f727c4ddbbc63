package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// A search that would test more than 2,500 candidates for its total has one only on request.
func TestTotalsOfManyCandidates(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), planOptions)
	load := func(from, until int) {
		t.Helper()
		var ops []store.Op
		for n := from; n < until; n++ {
			kept := "yes"
			if n%10 == 0 {
				kept = "no"
			}
			body := fmt.Sprintf(`{"Texts": {"family": [{"Folded": "okafor"}]}, "Tokens": {"kept": [{"Code": %q}]}}`, kept)
			ops = append(ops, store.Op{Kind: store.Put, Key: numbered(n), Body: store.Body{JSON: []byte(body)}})
		}
		if err := site.Load(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	kept := "yes"
	query := newestOkafors
	query.Where = store.All{query.Where, store.Not{Condition: store.TokenIs{Param: "kept", Code: &kept}}}
	total := func(mode store.TotalMode, want int64) {
		t.Helper()
		query.Total = mode
		page, err := site.Search(t.Context(), query)
		if err != nil || len(page.Records) != query.Count || page.Total != want {
			t.Errorf("%d records, total %d, %v, want %d records, total %d", len(page.Records), page.Total, err, query.Count, want)
		}
	}
	load(0, 2500)
	total(store.TotalWhenFree, 250)
	total(store.TotalAccurate, 250)
	load(2500, 2510)
	total(store.TotalWhenFree, store.UnknownTotal)
	total(store.TotalAccurate, 251)
}

// An exact total of three conditions, or of their opposites, is the number of live records that meet all,
// also if the lists of the conditions are too long and have a record twice.
func TestExactTotals(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), planOptions)
	site.SetPlanLimits(1, 3, 0)
	const records = 60
	for n := range records {
		family, kind := "Okafor", "a"
		switch n % 6 {
		case 0:
			family = "Oka"
		case 3:
			family = "OKA"
		}
		if n%4 == 0 {
			kind = "b"
		}
		body := fmt.Sprintf(`{
			"Texts": {"family": [{"Folded": %q, "Original": %q}, {"Folded": "okapi", "Original": "Okapi"}]},
			"Tokens": {"kind": [{"System": "s", "Code": %q}, {"System": "t", "Code": %[3]q}]},
			"Refs": {"organization": [{"Type": "Organization", "ID": "%[4]d"}]}
		}`, strings.ToLower(family), family, kind, n%5)
		if _, err := site.Write(t.Context(), []store.Op{{Kind: store.Put, Key: numbered(n), Body: store.Body{JSON: []byte(body)}}}); err != nil {
			t.Fatal(err)
		}
		if n%7 == 6 {
			if _, err := site.Write(t.Context(), []store.Op{{Kind: store.Delete, Key: numbered(n)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := "a"
	conditions := []struct {
		is store.Condition
		of func(n int) bool
	}{
		{store.TextIs{Param: "family", Text: "oka"}, func(int) bool { return true }},
		{store.TextIs{Param: "family", Text: "okaf"}, func(n int) bool { return n%3 != 0 }},
		{store.TextIs{Param: "family", Match: store.Exactly, Text: "Oka"}, func(n int) bool { return n%6 == 0 }},
		{store.TextIs{Param: "family", Match: store.Contains, Text: "afo"}, func(n int) bool { return n%3 != 0 }},
		{store.TokenIs{Param: "kind", Code: &a}, func(n int) bool { return n%4 != 0 }},
		{store.RefersTo{Param: "organization", To: store.Reference{Type: "Organization", ID: "2"}}, func(n int) bool { return n%5 == 2 }},
		{store.Present{Param: "kind"}, func(int) bool { return true }},
	}
	for _, first := range conditions {
		for _, second := range conditions {
			for _, third := range conditions {
				for opposites := range 8 {
					var where store.All
					var want int64
					for n := range records {
						if n%7 != 6 && first.of(n) == (opposites&1 == 0) && second.of(n) == (opposites&2 == 0) && third.of(n) == (opposites&4 == 0) {
							want++
						}
					}
					for i, is := range []store.Condition{first.is, second.is, third.is} {
						if opposites>>i&1 == 1 {
							is = store.Not{Condition: is}
						}
						where = append(where, is)
					}
					page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: where, Count: 1, Total: store.TotalAccurate})
					if err != nil || page.Total != want {
						t.Errorf("%+v: total %d, %v, want %d", where, page.Total, err, want)
					}
				}
			}
		}
	}
}
