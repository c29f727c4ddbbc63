package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	tern "github.com/jackc/tern/v2/migrate"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

func names(t *testing.T, sql string) []string {
	t.Helper()
	rows, err := shared.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// exercise makes every call, on records whose ids other sites use, too.
func exercise(t *testing.T, s *postgres.Store) {
	t.Helper()
	if err := s.Audit().Append(t.Context(), []*audit.Entry{{Time: time.Now(), ID: 1, Records: audit.RecordsOf("Patient/a", "Patient/b")}}); err != nil {
		t.Fatal(err)
	}
	code := "c"
	announce := func(store.Change) []store.Event {
		return []store.Event{{ID: "e", Type: "t", Subject: "s", Targets: []string{"w"}, Envelope: store.Envelope{JSON: []byte(`{}`)}}}
	}
	put := func(id, content string, claims ...store.Claim) {
		t.Helper()
		op := store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: []byte(content)}, Claims: claims, Events: announce}
		if _, err := s.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	put("a", `{"Tokens":{"code":[{"System":"s","Code":"c"}]},"Refs":{"partof":[{"Type":"Patient","ID":"b"}]}}`)
	put("b", `{"Texts":{"name":[{"Folded":"n","Original":"N"}]},"Periods":{"date":[{"From":1,"Until":2}]},"Points":{"near":[{"Latitude":1,"Longitude":2}]}}`)
	put("a", `{"Tokens":{"code":[{"System":"s","Code":"c"}]},"Refs":{"partof":[{"Type":"Patient","ID":"b"}]},"Salt":2}`)
	put("c", `{}`, store.Claim{Line: "line"})
	if _, err := s.Write(t.Context(), []store.Op{
		{Kind: store.Put, Key: store.Key{Type: patient, ID: "d"}, Body: store.Body{JSON: []byte(`{"Mentions":[{"Type":"Patient","ID":"b"}]}`)}, Requires: []store.Key{{Type: patient, ID: "b"}}},
		{Kind: store.Delete, Key: store.Key{Type: patient, ID: "c"}, Unreferenced: true, Bases: []string{"https://h.example/fhir"}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: patient, ID: "d"}, Unreferenced: true}}); err != nil {
		t.Fatal(err)
	}
	put("c", `{}`, store.Claim{Line: "line"})
	for _, kind := range []store.OpKind{store.Delete, store.Purge} {
		if _, err := s.Write(t.Context(), []store.Op{{Kind: kind, Key: store.Key{Type: patient, ID: "c"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Load(t.Context(), []store.Op{{Kind: store.Put, Key: store.Key{Type: patient, ID: "loaded"}, Body: store.Body{JSON: []byte(`{}`)}}}); err != nil {
		t.Fatal(err)
	}
	for _, where := range []store.Condition{
		nil,
		store.IDIn{"a"},
		store.TokenIs{Param: "code", Code: &code},
		store.TextIs{Param: "name", Text: "n"},
		store.PeriodIs{Param: "date", From: store.Bounds{Least: 0, Most: 5}, Until: store.Unbounded},
		store.Near{Param: "near", Center: store.Point{Latitude: 1, Longitude: 2}, Meters: 10},
		store.Chain{Type: patient, Where: store.IDIn{"b"}},
		store.ReferredBy{Type: patient, Where: store.IDIn{"a"}},
		store.RefersAround{Param: "partof", To: store.Reference{Type: patient, ID: "b"}},
		store.RefersToID{Param: "partof", Types: []string{patient, "Person"}, ID: "b"},
	} {
		page, err := s.Search(t.Context(), store.Query{
			Types: []string{patient}, Where: where, Count: 10, Total: store.TotalAccurate, MaxIncluded: 10,
			Includes: []store.Include{{Iterate: true}, {Reverse: true}},
		})
		if err != nil || len(page.Records) == 0 || len(page.Records) > 3 {
			t.Errorf("%+v: %d records, %v", where, len(page.Records), err)
		}
	}
	for _, key := range []store.Key{{}, {Type: patient}, {Type: patient, ID: "a"}} {
		page, err := s.History(t.Context(), store.HistoryQuery{Key: key, Count: 10})
		if err != nil || page.Total > 4 || page.Total < 2 {
			t.Errorf("history of %v: %d versions, %v", key, page.Total, err)
		}
	}
	if _, err := s.GetVersion(t.Context(), store.Key{Type: patient, ID: "a"}, 1); err != nil {
		t.Error(err)
	}
	if got := s.Stats().Records; got != 3 {
		t.Errorf("%d records, want 3: other sites have the others", got)
	}
	if state, err := s.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != postgres.Current {
		t.Errorf("renewed: %v, %v", state, err)
	}
}

// TestSitesAreIsolated shows that sites are isolated in reads, searches, histories and claims, and
// after purges and updates.
func TestSitesAreIsolated(t *testing.T) {
	ours, theirs := open(t, shared, uuid.NewString(), postgres.Options{}), open(t, shared, uuid.NewString(), postgres.Options{})
	exercise(t, theirs)
	if page, err := ours.Search(t.Context(), store.Query{Types: []string{patient}, Count: 10}); err != nil || len(page.Records) > 0 {
		t.Errorf("records of another site were found: %v, %v", page.Records, err)
	}
	exercise(t, ours)
	for _, id := range []string{"a", "b", "loaded"} {
		if _, err := ours.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: patient, ID: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	code := "c"
	page, err := theirs.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.TokenIs{Param: "code", Code: &code}, Count: 10})
	if err != nil || len(page.Records) != 1 {
		t.Errorf("after another site purged its own: %v, %v", page.Records, err)
	}
	if got := ours.Stats().Records + 10*theirs.Stats().Records; got != 30 {
		t.Errorf("records of ours, and ten times theirs: %d, want 30", got)
	}
	again := open(t, shared, uuid.NewString(), postgres.Options{})
	if again.Stats().Records != 0 {
		t.Error("a new site has records")
	}
}

// TestMigrateTwice shows that several controllers may migrate concurrently and repeatedly.
func TestMigrateTwice(t *testing.T) {
	name := "migrated_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := shared.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- migrate(t.Context(), server.URL(name)) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	pool, err := postgres.Connect(t.Context(), server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	opened := func() string {
		_, err := postgres.Open(t.Context(), pool, "site", postgres.Options{})
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a schema that does not fit is not unavailable but: %v", err)
		}
		return fmt.Sprint(err)
	}
	if got := opened(); got != "<nil>" {
		t.Error(got)
	}
	if version, err := schema.Migrate(t.Context(), conn); err != nil || version != schema.Newest {
		t.Errorf("version %d, want %d: %v", version, schema.Newest, err)
	}
	for _, change := range []struct{ sql, want string }{
		{"UPDATE paddock_schema_version SET version = version + 1", "<nil>"}, // a later release's expansion
		{"UPDATE requirement SET oldest_server = 99", "upgrade the server"},
		{"UPDATE requirement SET oldest_server = 1; UPDATE paddock_schema_version SET version = 1", "migrate the schema"},
		{"DROP TABLE paddock_schema_version", "migrate the schema"},
	} {
		if _, err := conn.Exec(t.Context(), change.sql); err != nil {
			t.Fatal(err)
		}
		if got := opened(); !strings.Contains(got, change.want) {
			t.Errorf("after %s: %s, want %s", change.sql, got, change.want)
		}
		if change.want == "upgrade the server" {
			if _, err := schema.Migrate(t.Context(), conn); !errors.Is(err, schema.ErrNewer) {
				t.Errorf("migrating what a later release contracted: %v", err)
			}
		}
	}
}

// TestNewerSchemaUnderOpenStore lets a later release remove a table below a store that is open. It
// shows that what needs the table is unavailable and writes nothing, that all else is served, and
// that the database stays as the later release left it.
func TestNewerSchemaUnderOpenStore(t *testing.T) {
	t.Parallel()
	const name = "newer_under_open_store"
	pool := connectNew(t, name)
	site := open(t, pool, uuid.NewString(), postgres.Options{})
	if _, err := site.Write(t.Context(), []store.Op{counterOp("a", 1)}); err != nil {
		t.Fatal(err)
	}
	key, code := store.Key{Type: patient, ID: "a"}, "1"
	search := func(where store.Condition) error {
		_, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: where, Count: 1})
		return err
	}
	text := store.TextIs{Param: "name", Text: "x"}
	if err := search(text); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"UPDATE paddock_schema_version SET version = version + 1", "UPDATE requirement SET oldest_server = 99", "DROP TABLE ix_text"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := search(text); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("search in the table that is gone: %v, want ErrUnavailable", err)
	}
	named := counterOp("a", 2)
	named.Body.JSON = []byte(`{"Salt":2,"Texts":{"name":[{"Folded":"rex","Original":"Rex"}]}}`)
	if _, err := site.Write(t.Context(), []store.Op{named}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("write to the table that is gone: %v, want ErrUnavailable", err)
	}
	if record, err := site.Get(t.Context(), key); err != nil || record.Version != 1 || counted(t, record) != 1 {
		t.Errorf("record %v, error %v, want version 1 as it was", record, err)
	}
	if err := search(store.TokenIs{Param: "code", Code: &code}); err != nil {
		t.Errorf("search in a table that is left: %v", err)
	}
	var restored bool
	if err := pool.QueryRow(t.Context(), "SELECT to_regclass('ix_text') IS NOT NULL OR (SELECT oldest_server FROM requirement) <> 99").Scan(&restored); err != nil || restored {
		t.Errorf("the database was changed: %t, %v", restored, err)
	}
}

// TestMigrationDuringRequests makes a migration wait for a table that a transaction has read. The
// transaction then reads a table that the migration has locked.
func TestMigrationDuringRequests(t *testing.T) {
	t.Parallel()
	const name = "busy"
	if _, err := shared.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.URL(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	migrated := connect()
	earlier, err := tern.NewMigrator(t.Context(), migrated, schema.VersionTable)
	if err != nil {
		t.Fatal(err)
	}
	if err := earlier.LoadMigrations(os.DirFS("schema/migrations")); err != nil {
		t.Fatal(err)
	}
	const beforeLabels = 4 // the next one alters res, then hist
	if err := earlier.MigrateTo(t.Context(), beforeLabels); err != nil {
		t.Fatal(err)
	}

	request, err := connect().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request.Exec(t.Context(), "SELECT FROM hist"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := schema.Migrate(t.Context(), migrated)
		done <- err
	}()
	for waiting := 0; waiting == 0; time.Sleep(5 * time.Millisecond) {
		if err := request.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks
			WHERE NOT granted AND relation = 'hist'::regclass`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := request.Exec(t.Context(), "SELECT FROM res"); err != nil {
		t.Errorf("a request beside the migration: %v", err)
	}
	if err := request.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the migration beside a request: %v", err)
	}
}
