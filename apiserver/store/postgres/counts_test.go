package postgres_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// A search that would test more than 5,000 candidates for its total has one only on request.
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
	load(0, 5000)
	total(store.TotalWhenFree, 500)
	total(store.TotalAccurate, 500)
	load(5000, 5010)
	total(store.TotalWhenFree, store.UnknownTotal)
	total(store.TotalAccurate, 501)
}
