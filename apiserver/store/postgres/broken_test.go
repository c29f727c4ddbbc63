package postgres_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// roundsVariable sets how many times the server is killed.
const roundsVariable = "PADDOCK_KILL_ROUNDS"

// breakable starts a durable server for this test alone, and returns a pool of it.
func breakable(t *testing.T) (*localpostgres.Server, *pgxpool.Pool) {
	t.Helper()
	own := startServer(t, map[string]string{"shared_buffers": "32MB"})
	pool, err := postgres.Connect(t.Context(), own.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return own, pool
}

// startServer starts a durable server for this test alone.
func startServer(t *testing.T, settings map[string]string) *localpostgres.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "paddock-postgres-breakable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := localpostgres.Start(t.Context(), localpostgres.Options{Dir: dir, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := migrate(t.Context(), own.URL(database)); err != nil {
		t.Fatal(err)
	}
	return own
}

func counterOp(id string, n int) store.Op {
	content := fmt.Sprintf(`{"Salt":%d,"Tokens":{"code":[{"Code":"%d"}]}}`, n, n)
	return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Method: store.MethodPut, Body: store.Body{JSON: []byte(content)}}
}

func counted(t *testing.T, r store.Record) int {
	t.Helper()
	var content struct{ Salt int }
	if err := json.Unmarshal(r.Body.JSON, &content); err != nil {
		t.Fatal(err)
	}
	return content.Salt
}

// writer increments one record, and every third time a second one in the same write.
type writer struct {
	id           string
	acknowledged int
	// unknown is set while the outcome of the last write is not known.
	unknown bool
}

func (w *writer) run(ctx context.Context, s store.Store) error {
	for ctx.Err() == nil {
		next := w.acknowledged + 1
		ops := []store.Op{counterOp(w.id, next)}
		if next%3 == 0 {
			ops = append(ops, counterOp(w.id+"-pair", next))
		}
		_, err := s.Write(ctx, ops)
		switch {
		case err == nil:
			w.acknowledged = next
		case errors.Is(err, store.ErrUnavailable) || errors.Is(err, audit.ErrUnavailable) || errors.Is(err, context.Canceled):
			w.unknown = true
			return nil
		default:
			return err
		}
	}
	return nil
}

// recovered is what a call comes to once the connections of the dead server are used up.
func recovered[T any](t *testing.T, call func() (T, error)) (T, error) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; {
		result, err := call()
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(until) {
			return result, err
		}
	}
}

// check looks at what the database has after a crash.
func (w *writer) check(t *testing.T, s *postgres.Store) {
	t.Helper()
	record, err := recovered(t, func() (store.Record, error) { return s.Get(t.Context(), store.Key{Type: patient, ID: w.id}) })
	if errors.Is(err, store.ErrNotFound) && w.acknowledged == 0 {
		w.unknown = false
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", w.id, err)
	}
	n := counted(t, record)
	if n < w.acknowledged || n > w.acknowledged+1 || n > w.acknowledged && !w.unknown {
		t.Fatalf("%s is at %d, %d was acknowledged", w.id, n, w.acknowledged)
	}
	if record.Version != int64(n) {
		t.Fatalf("%s is at %d in version %d: a write was doubled or lost", w.id, n, record.Version)
	}
	if n >= 3 {
		pair, err := recovered(t, func() (store.Record, error) { return s.Get(t.Context(), store.Key{Type: patient, ID: w.id + "-pair"}) })
		if err != nil || counted(t, pair) != n/3*3 {
			t.Fatalf("%s is at %d, its pair at %v, %v: not atomic", w.id, n, pair, err)
		}
	}
	history, err := recovered(t, func() (store.Page, error) {
		return s.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: patient, ID: w.id}})
	})
	if err != nil || history.Total != int64(n) {
		t.Fatalf("%s is at %d with %d versions: %v", w.id, n, history.Total, err)
	}
	code := strconv.Itoa(n)
	found, err := recovered(t, func() (store.Page, error) {
		return s.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.All{store.IDIn{w.id}, store.TokenIs{Param: "code", Code: &code}}, Count: 1})
	})
	if err != nil || len(found.Records) != 1 {
		t.Fatalf("%s at %d is not found by its code: %v", w.id, n, err)
	}
	entries, err := recovered(t, func() ([]audit.Entry, error) {
		return s.Audit().Search(t.Context(), audit.Query{Entity: audit.Entity(record.Key), Outcomes: []audit.Outcome{audit.Success}, Count: 10_000})
	})
	alone := slices.DeleteFunc(entries, func(e audit.Entry) bool { return string(e.Records) != patient+"/"+w.id })
	if err != nil || len(alone) != n-n/3 {
		t.Fatalf("%s is at %d, after %d writes of one record, with %d audit entries: %v", w.id, n, n-n/3, len(alone), err)
	}
	w.acknowledged, w.unknown = n, false
}

// TestKilledServer repeatedly kills the server during writes. It shows that every acknowledged
// write is stored, once, with its history and its index rows, and that a write of one record has an audit
// entry if and only if it is stored.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv(roundsVariable), "3"))
	if err != nil {
		t.Fatal(err)
	}
	own, pool := breakable(t)
	site := open(t, pool, uuid.NewString(), postgres.Options{})
	s := record(t, site, audit.Settings{})
	writers := make([]*writer, 6)
	for i := range writers {
		writers[i] = &writer{id: fmt.Sprintf("writer-%d", i)}
	}
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		var group sync.WaitGroup
		errs := make(chan error, len(writers))
		for _, w := range writers {
			group.Go(func() { errs <- w.run(ctx, s) })
		}
		// Kill it after some writes, at another point in each round.
		goal := site.Stats().Records + int64(len(writers)) + int64(round*7)
		for versions(t, site) < goal && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if err := own.Kill(); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		cancel()
		for range writers {
			if err := <-errs; err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if err := own.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, "the audit log", func() error {
			if s.log.Failing() {
				return audit.ErrUnavailable
			}
			return nil
		})
		for _, w := range writers {
			w.check(t, site)
		}
	}
	total := 0
	for _, w := range writers {
		total += w.acknowledged
	}
	t.Logf("%d kills, %d writes acknowledged", rounds, total)
}

func versions(t *testing.T, s store.Store) int64 {
	t.Helper()
	page, err := recovered(t, func() (store.Page, error) { return s.History(t.Context(), store.HistoryQuery{}) })
	if err != nil {
		t.Fatal(err)
	}
	return page.Total
}

// TestSlowQuery shows that a query that exceeds its time returns store.ErrQueryTimeout.
func TestSlowQuery(t *testing.T) {
	config, err := postgres.Config(server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `SET statement_timeout = '1ms'`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	key := uuid.NewString()
	filled := open(t, shared, key, postgres.Options{})
	var ops []store.Op
	for i := range 3000 {
		ops = append(ops, counterOp(strconv.Itoa(i), i))
	}
	if err := filled.Load(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	slow := open(t, shared, key, postgres.Options{}).Through(pool)
	_, err = slow.Search(t.Context(), store.Query{Types: []string{patient}, Count: 1, Where: store.TextIs{Param: "none", Match: store.Contains, Text: "x"}})
	if !errors.Is(err, store.ErrQueryTimeout) {
		t.Errorf("search: got %v, want ErrQueryTimeout", err)
	}
	locked, err := shared.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := locked.Exec(t.Context(), `LOCK TABLE res IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	if _, err = slow.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: patient, ID: "1"}}); !errors.Is(err, store.ErrQueryTimeout) {
		t.Errorf("history: got %v, want ErrQueryTimeout", err)
	}
}

// TestAnotherExtractor shows that an update removes the index rows that another extractor made of
// the same body.
func TestAnotherExtractor(t *testing.T) {
	key := uuid.NewString()
	older := open(t, shared, key, postgres.Options{Extractor: extractingOthers(func([]byte) []store.IndexValue {
		return []store.IndexValue{
			{Param: "old", Value: store.Token{Code: "c"}},
			{Param: "old", Value: store.Text{Folded: "t", Original: "T"}},
			{Param: "old", Value: store.Period{From: 1, Until: 2}},
			{Param: "old", Value: store.Reference{Type: patient, ID: "b"}},
			{Param: "old", Value: store.Point{Latitude: 1, Longitude: 1}},
		}
	})})
	newer := open(t, shared, key, postgres.Options{})
	code := "c"
	for name, change := range map[string]store.Op{
		"updated": counterOp("updated", 2), "deleted": {Kind: store.Delete, Key: store.Key{Type: patient, ID: "deleted"}},
		"purged": {Kind: store.Purge, Key: store.Key{Type: patient, ID: "purged"}},
	} {
		if _, err := older.Write(t.Context(), []store.Op{counterOp(name, 1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := newer.Write(t.Context(), []store.Op{change}); err != nil {
			t.Fatal(err)
		}
	}
	for _, condition := range []store.Condition{
		store.TokenIs{Param: "old", Code: &code},
		store.TextIs{Param: "old", Text: "t"},
		store.Present{Param: "old"},
		store.PeriodIs{Param: "old", From: store.Bounds{Least: 1, Most: 1}, Until: store.Unbounded},
		store.RefersTo{Param: "old", To: store.Reference{Type: patient, ID: "b"}},
		store.Near{Param: "old", Center: store.Point{Latitude: 1, Longitude: 1}, Meters: 1},
	} {
		page, err := newer.Search(t.Context(), store.Query{Types: []string{patient}, Count: 5, Where: condition})
		if err != nil || len(page.Records) > 0 {
			t.Errorf("%+v still finds %d records: %v", condition, len(page.Records), err)
		}
	}
	count, err := shared.Query(t.Context(), `SELECT 1 FROM ix_code WHERE rid IN (SELECT rid FROM res r JOIN sites s ON s.site = r.site AND s.key = $1)`, key)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for count.Next() {
		rows++
	}
	if rows != 1 {
		t.Errorf("%d tokens are left, want that of the updated record", rows)
	}
}
