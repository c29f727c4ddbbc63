package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// beginWrite takes the lock of a write of the site, as a write does (clock.go), a few milliseconds after
// the call.
func beginWrite(t *testing.T, site *postgres.Store) pgx.Tx {
	t.Helper()
	tx, err := shared.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(), `SELECT pg_sleep(0.005), pg_advisory_xact_lock_shared(-$1::int4, (floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 % 2147483648)::int4)`, site.Number())
	must(t, err)
	return tx
}

// TestPageBeforeWatermark shows that pages of searches by time leave out what was written after the
// beginning of a write that is still open, whatever the order.
func TestPageBeforeWatermark(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	writer, reader := open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	writeAll(t, writer, counterOp("before", 1))
	tx := beginWrite(t, writer)
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
		if diff := cmp.Diff([]string{"before"}, idsOf(page)); diff != "" || page.Total != 1 {
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

// idsOf returns the ids of the records of a page.
func idsOf(page store.Page) []string {
	ids := []string{}
	for _, r := range page.Records {
		ids = append(ids, r.Key.ID)
	}
	return ids
}

// TestFullPagesBeforeWatermark shows that pages are full, and that the next page goes on after them,
// although the first hits were written after the beginning of a write that is still open. Each search
// expects the late hits of the one before.
func TestFullPagesBeforeWatermark(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	writer, reader := open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	var before []string
	for n := range 12 {
		id := fmt.Sprintf("before-%d", n)
		writeAll(t, writer, counterOp(id, 1))
		before = append([]string{id}, before...)
	}
	beginWrite(t, writer)
	for late := range 7 {
		writeAll(t, writer, counterOp(fmt.Sprintf("after-%d", late), 1))
		query := store.Query{Types: []string{patient}, Count: 8, Sort: []store.Sort{{Field: store.SortUpdated, Descending: true}}}
		first, err := reader.Search(t.Context(), query)
		must(t, err)
		query.After = first.Next
		second, err := reader.Search(t.Context(), query)
		must(t, err)
		if diff := cmp.Diff([][]string{before[:8], before[8:]}, [][]string{idsOf(first), idsOf(second)}); diff != "" || len(second.Next) > 0 {
			t.Errorf("%d late records, next page after the last one: %q (-want +got):\n%s", late+1, second.Next, diff)
		}
	}
}

// lockReads counts the statements of a pool that read the locks of open writes.
type lockReads struct{ atomic.Int64 }

func (l *lockReads) count(sql string) {
	if strings.Contains(sql, "pg_locks") {
		l.Add(1)
	}
}

func (l *lockReads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.count(data.SQL)
	return ctx
}

func (l *lockReads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *lockReads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (l *lockReads) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	l.count(data.SQL)
}

func (l *lockReads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TestSettledWatermark shows that a site without writes for a second uses the watermark of an earlier
// search, but returns and counts what another process writes then, unless a write before it is open.
func TestSettledWatermark(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	reads := &lockReads{}
	config := shared.Config()
	config.ConnConfig.Tracer = reads
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	writer, reader := open(t, shared, key, postgres.Options{}), open(t, pool, key, postgres.Options{})
	want := func(descending bool, total int64, ids ...string) {
		t.Helper()
		query := store.Query{Types: []string{patient}, Count: 2, Sort: []store.Sort{{Field: store.SortUpdated, Descending: descending}}}
		for mode, total := range map[store.TotalMode]int64{store.TotalNone: store.UnknownTotal, store.TotalAccurate: total} {
			query.Total = mode
			page, err := reader.Search(t.Context(), query)
			must(t, err)
			if diff := cmp.Diff(ids, idsOf(page)); diff != "" || page.Total != total {
				t.Errorf("total %d, want %d (-want +got):\n%s", page.Total, total, diff)
			}
		}
	}
	write := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			writeAll(t, writer, counterOp(id, 1))
		}
		time.Sleep(5 * time.Millisecond) // the watermark has milliseconds
	}
	const settled = 1100 * time.Millisecond

	write("a", "b", "c")
	time.Sleep(settled)
	for range 20 {
		page, err := reader.Search(t.Context(), store.Query{Types: []string{patient}, Count: 2, Total: store.TotalNone, Sort: []store.Sort{{Field: store.SortUpdated, Descending: true}}})
		must(t, err)
		if diff := cmp.Diff([]string{"c", "b"}, idsOf(page)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if n := reads.Load(); n == 0 || n == 20 { // one for each settledTTL
		t.Errorf("20 searches without writes read the locks of open writes %d times, want at least once and not each time", n)
	}
	want(true, 3, "c", "b")
	write("d", "e")
	want(false, 5, "a", "b") // the new records are on no page
	want(true, 5, "e", "d")
	time.Sleep(settled)
	want(true, 5, "e", "d")
	tx := beginWrite(t, writer)
	write("f")
	want(false, 5, "a", "b")
	want(true, 5, "e", "d")
	must(t, tx.Rollback(t.Context()))
	want(true, 6, "f", "e")
}
