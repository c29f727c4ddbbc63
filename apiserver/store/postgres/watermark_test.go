package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestPageBeforeWatermark shows that pages of searches by time leave out what was written after the
// beginning of a write that is still open, whatever the order.
func TestPageBeforeWatermark(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	writer, reader := open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	writeAll(t, writer, counterOp("before", 1))
	tx, err := shared.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	// As a write does (clock.go).
	_, err = tx.Exec(t.Context(), `SELECT pg_sleep(0.005), pg_advisory_xact_lock_shared(-$1::int4, (floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 % 2147483648)::int4)`, writer.Number())
	must(t, err)
	writeAll(t, writer, counterOp("after", 1))
	since := store.UpdatedIn{From: time.Now().Add(-time.Hour)}
	for name, query := range map[string]store.Query{
		"last updated first": {Sort: []store.Sort{{Field: store.SortUpdated, Descending: true}}},
		"first updated":      {Sort: []store.Sort{{Field: store.SortUpdated}}},
		"in a range":         {Where: since, Sort: []store.Sort{{Field: store.SortCreated, Descending: true}}},
	} {
		query.Types, query.Count, query.Total = []string{patient}, 20, store.TotalAccurate
		page, err := reader.Search(t.Context(), query)
		must(t, err)
		got := []string{}
		for _, r := range page.Records {
			got = append(got, r.Key.ID)
		}
		if diff := cmp.Diff([]string{"before"}, got); diff != "" || page.Total != 1 {
			t.Errorf("%s: total %d (-want +got):\n%s", name, page.Total, diff)
		}
	}
	must(t, tx.Rollback(t.Context()))
	page, err := reader.Search(t.Context(), store.Query{Types: []string{patient}, Count: 20, Sort: []store.Sort{{Field: store.SortUpdated, Descending: true}}})
	must(t, err)
	if len(page.Records) != 2 {
		t.Errorf("%d records after the open write ended, want 2", len(page.Records))
	}
}
