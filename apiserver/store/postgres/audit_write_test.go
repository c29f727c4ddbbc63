package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// recorded is a store of which each write is a request that a log records.
type recorded struct {
	store.Restricted
	log *audit.Log
	// now is the clock of the requests.
	now   func() time.Time
	write func(context.Context, []store.Op) ([]store.Result, error)
}

// retention is that of the logs. Each trims itself in the first minute.
const retention = 100 * 24 * time.Hour

// record returns the store of a site with a log. All methods but Write panic.
func record(t *testing.T, site *postgres.Store, settings audit.Settings) recorded {
	settings.Retention = retention
	log := audit.NewLog(t.Name(), site.Audit(), settings)
	t.Cleanup(func() { log.Close(context.WithoutCancel(t.Context())) })
	return recorded{log: log, now: time.Now, write: site.Write}
}

var writeStatuses = map[store.Outcome]int{
	store.Unchanged: http.StatusOK, store.Created: http.StatusCreated, store.Updated: http.StatusOK, store.Removed: http.StatusOK,
}

// written is the store behind the observer of the log.
type written struct {
	store.Restricted
	recorded recorded
}

// Write implements store.Store.
func (w written) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	return w.recorded.write(ctx, ops)
}

// Write implements store.Store. A failed write has the status 409.
func (r recorded) Write(ctx context.Context, ops []store.Op) (results []store.Result, err error) {
	handler := (&audit.Auditor{Now: r.now}).Handler("fhir", http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		recorder := audit.From(request.Context())
		recorder.At(audit.Sink{ID: "1042", Log: r.log})
		recorder.Interaction("update", audit.Update, store.Key{Type: ops[0].Key.Type})
		recorder.Statuses(writeStatuses)
		results, err = audit.Observe(written{recorded: r}).Write(request.Context(), ops)
		status := http.StatusConflict
		if err == nil {
			status = writeStatuses[results[0].Outcome]
		}
		w.WriteHeader(status)
	}), func(_ http.ResponseWriter, _ *http.Request, refused error) { err = refused })
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPut, "/", nil))
	return results, err
}

// entriesOf returns the records and statuses in the log of a site, oldest first. An entry that the
// transaction of its record's newest version stored ends with "with it".
func entriesOf(t *testing.T, pool *pgxpool.Pool, siteKey string, log audit.Storage) (all []string) {
	t.Helper()
	found, err := log.Search(t.Context(), audit.Query{Count: 1000})
	must(t, err)
	rows, err := pool.Query(t.Context(), `SELECT a.id, EXISTS (SELECT FROM res r WHERE r.site = a.site AND ARRAY[r.self] = a.records AND r.xmin = a.xmin) FROM audit a JOIN sites s USING (site) WHERE s.key = $1`, siteKey)
	must(t, err)
	inWrite := map[int64]bool{}
	var id int64
	var with bool
	_, err = pgx.ForEachRow(rows, []any{&id, &with}, func() error { inWrite[id] = with; return nil })
	must(t, err)
	if len(inWrite) != len(found) {
		t.Errorf("%d entries are stored, and %d are found", len(inWrite), len(found))
	}
	for _, e := range found {
		line := fmt.Sprintf("%s %d", e.Records, e.Status)
		if inWrite[e.ID] {
			line += " with it"
		}
		all = append([]string{line}, all...)
	}
	return all
}

// makePartitions makes the partitions of the log for today and tomorrow.
func makePartitions(t *testing.T) {
	t.Helper()
	now, site := time.Now().UTC(), open(t, shared, uuid.NewString(), postgres.Options{})
	must(t, site.Audit().Append(t.Context(), []*audit.Entry{{Time: now, ID: 1}, {Time: now.Add(24 * time.Hour), ID: 1}}))
}

// TestWriteEntry shows that each write of one record has one entry in the log, which the transaction of
// the write stores.
func TestWriteEntry(t *testing.T) {
	t.Parallel()
	pool := watched(t)
	makePartitions(t)
	for name, test := range map[string]struct {
		prepare func(*postgres.Store)
		claims  []store.Claim
	}{
		"a statement":      {prepare: func(*postgres.Store) {}},
		"a batch":          {prepare: (*postgres.Store).BatchEveryWrite},
		"in a transaction": {prepare: func(*postgres.Store) {}, claims: []store.Claim{{Line: "room"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			siteKey := uuid.NewString()
			site := open(t, pool, siteKey, postgres.Options{})
			test.prepare(site)
			s := record(t, site, audit.Settings{})
			key := store.Key{Type: patient, ID: "Rex"}
			op := func(n int) store.Op {
				op := counterOp(key.ID, n)
				op.Claims = test.claims
				return op
			}
			remove := store.Op{Kind: store.Delete, Key: key}
			stale := op(3)
			stale.If = store.Precondition{Absent: true}
			var got []string
			for _, op := range []store.Op{op(1), op(2), op(2), stale, remove, remove, op(3), {Kind: store.Purge, Key: key}} {
				result := "refused"
				if results, err := s.Write(t.Context(), []store.Op{op}); err == nil {
					result = fmt.Sprint(results[0].Outcome)
				}
				entries := entriesOf(t, shared, siteKey, site.Audit())
				got = append(got, fmt.Sprintf("%s: %d entries, %s", result, len(entries), entries[len(entries)-1]))
			}
			want := []string{
				fmt.Sprintf("%v: 1 entries, Patient/Rex 201 with it", store.Created), fmt.Sprintf("%v: 2 entries, Patient/Rex 200 with it", store.Updated),
				fmt.Sprintf("%v: 3 entries, Patient/Rex 200", store.Unchanged), "refused: 4 entries, Patient/Rex 409",
				fmt.Sprintf("%v: 5 entries, Patient/Rex 200 with it", store.Removed), fmt.Sprintf("%v: 6 entries, Patient/Rex 200", store.Unchanged),
				fmt.Sprintf("%v: 7 entries, Patient/Rex 201 with it", store.Created), fmt.Sprintf("%v: 8 entries, Patient/Rex 200", store.Removed),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWriteEntryRefused shows that the Log stores the entry of a write if Postgres refuses the entry in the
// transaction of the write.
func TestWriteEntryRefused(t *testing.T) {
	t.Parallel()
	t.Run("a day without a partition", func(t *testing.T) {
		t.Parallel()
		pool, siteKey := connectNew(t, fmt.Sprintf("audit_%d", rand.Uint32())), uuid.NewString()
		site := open(t, pool, siteKey, postgres.Options{})
		s, past := record(t, site, audit.Settings{}), time.Now().Add(-retention/2)
		s.now = func() time.Time { past = past.Add(time.Second); return past }
		writeAll(t, s, counterOp("first", 1), counterOp("second", 1))
		want := []string{"Patient/first 201", "Patient/second 201 with it"}
		if diff := cmp.Diff(want, entriesOf(t, pool, siteKey, site.Audit())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a locked table", func(t *testing.T) {
		t.Parallel()
		name := fmt.Sprintf("audit_%d", rand.Uint32())
		locking := connectNew(t, name)
		pool, err := postgres.Connect(t.Context(), server.URL(name)+"&statement_timeout=500ms")
		must(t, err)
		t.Cleanup(pool.Close)
		site := open(t, pool, uuid.NewString(), postgres.Options{})
		tx, err := locking.Begin(t.Context())
		must(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = tx.Exec(t.Context(), `LOCK TABLE audit IN SHARE MODE`)
		must(t, err)
		s := record(t, site, audit.Settings{Continue: true})
		writeAll(t, s, counterOp("first", 1))
		if first, err := site.Get(t.Context(), store.Key{Type: patient, ID: "first"}); err != nil || first.Version != 1 {
			t.Errorf("version %d, error %v", first.Version, err)
		}
	})
	t.Run("no table", func(t *testing.T) {
		t.Parallel()
		pool := connectNew(t, fmt.Sprintf("audit_%d", rand.Uint32()))
		site := open(t, pool, uuid.NewString(), postgres.Options{})
		execute(t, pool, `ALTER TABLE audit RENAME TO elsewhere`)
		exists := func(id string) bool {
			_, err := site.Get(t.Context(), store.Key{Type: patient, ID: id})
			return err == nil
		}
		continues := record(t, site, audit.Settings{Continue: true})
		writeAll(t, continues, counterOp("first", 1), counterOp("second", 1))
		stops := record(t, site, audit.Settings{})
		if _, err := stops.Write(t.Context(), []store.Op{counterOp("third", 1)}); !errors.Is(err, audit.ErrWritten) {
			t.Errorf("the first write: %v", err)
		}
		if _, err := stops.Write(t.Context(), []store.Op{counterOp("fourth", 1)}); !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, audit.ErrWritten) {
			t.Errorf("the second write: %v", err)
		}
		if !exists("first") || !exists("second") || !exists("third") || exists("fourth") {
			t.Error("other records are stored than the answers say")
		}
	})
}
