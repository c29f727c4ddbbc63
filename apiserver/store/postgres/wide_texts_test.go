package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	tern "github.com/jackc/tern/v2/migrate"

	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
)

// beforeTexts and beforeCodes are the versions of the schema of the releases without ix_text and without
// ix_code.
const beforeTexts, beforeCodes = 8, 10

// upgraded returns a database of a release without ix_text, with one site, that was then migrated.
func upgraded(t *testing.T, siteKey string) *pgxpool.Pool {
	t.Helper()
	return upgradedFrom(t, siteKey, beforeTexts)
}

// upgradedFrom returns a database with one site that was migrated from a version of the schema.
func upgradedFrom(t *testing.T, siteKey string, version int32) *pgxpool.Pool {
	t.Helper()
	name := "upgraded_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := shared.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	migrateFrom(t, server.URL(name), siteKey, version)
	pool, err := postgres.Connect(t.Context(), unhurried(server.URL(name)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// endSession closes the connection of a server of an earlier release, and waits until Postgres has ended
// its session, which happens after the connection is closed.
func endSession(t *testing.T, pool *pgxpool.Pool, earlier *pgx.Conn) {
	t.Helper()
	pid := earlier.PgConn().PID()
	must(t, earlier.Close(t.Context()))
	for isThere := true; isThere; time.Sleep(10 * time.Millisecond) {
		must(t, pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, int32(pid)).Scan(&isThere))
	}
}

// execute runs statements, as another release would.
func execute(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// migrateFrom migrates an empty database to a version of the schema, adds a site, and migrates the
// database to the newest schema.
func migrateFrom(t *testing.T, uri, siteKey string, version int32) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	earlier, err := tern.NewMigrator(t.Context(), conn, schema.VersionTable)
	if err != nil {
		t.Fatal(err)
	}
	must(t, earlier.LoadMigrations(os.DirFS("schema/migrations")))
	must(t, earlier.MigrateTo(t.Context(), version))
	if _, err := conn.Exec(t.Context(), `INSERT INTO sites (key, hash_key) VALUES ($1, '0123456789abcdef')`, siteKey); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

// TestStoreDuringUpgrade runs the suite in a database that has the tables of earlier releases.
func TestStoreDuringUpgrade(t *testing.T) {
	t.Parallel()
	pool := upgraded(t, "another")
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		return open(t, pool, key, withFacets()), open(t, pool, key, withFacets())
	})
}

// TestUpgradeOfTexts upgrades a database while a server of an earlier release writes. What that
// server does is imitated by statements that leave out the new columns.
func TestUpgradeOfTexts(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	count := func(sql string) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	named := func(id, name string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"` + name + `","Original":"` + name + `"}]}}`)}}
	}
	site := open(t, pool, key, postgres.Options{})
	found := func(s *postgres.Store, name string) int {
		t.Helper()
		page, err := s.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.TextIs{Param: "name", Text: name}, Count: 10, Total: store.TotalAccurate})
		if err != nil {
			t.Fatal(err)
		}
		if int(page.Total) != len(page.Records) {
			t.Errorf("%d records of %d were found", len(page.Records), page.Total)
		}
		return len(page.Records)
	}
	writeAll(t, site, named("a", "smith"), named("b", "smith"), named("c", "smith"), named("d", "smith"))
	execute(t, pool, `UPDATE res SET packed = NULL, vals = ''`) // as an earlier release stores them
	if n := count(`SELECT count(*) FROM ix_text`); n > 0 {
		t.Errorf("%d rows of records that an earlier release wrote", n)
	}
	earlier, err := pgx.Connect(t.Context(), server.URL(pool.Config().ConnConfig.Database)+"&application_name=paddock")
	if err != nil {
		t.Fatal(err)
	}
	renew := func(want postgres.Renewal) {
		t.Helper()
		site.SetRenewPause(0)
		if state, err := site.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != want {
			t.Errorf("renewed: %v, %v, want %v", state, err, want)
		}
	}
	renew(postgres.Waiting)
	if n := count(`SELECT count(*) FROM ix_text`); n != 4 {
		t.Errorf("%d rows after reindexing, want 4", n)
	}
	// A server of an earlier release updates a record, deletes one, and purges one.
	for _, sql := range []string{
		`UPDATE ix_str SET val = 'jones' WHERE rid = (SELECT rid FROM res WHERE id = 'a')`,
		`UPDATE res SET ver = ver + 1, ixsum = ixsum + 1, body = (SELECT body FROM res WHERE id = 'b') WHERE id = 'a'`,
		`DELETE FROM ix_str WHERE rid IN (SELECT rid FROM res WHERE id IN ('b', 'c'))`,
		`UPDATE res SET ver = ver + 1, deleted = true, marks = '{}', body = '\x00' WHERE id = 'b'`, `DELETE FROM res WHERE id = 'c'`,
	} {
		if _, err := earlier.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(`SELECT count(*) FROM ix_text`); n != 1 {
		t.Errorf("%d rows after writes of an earlier release, want 1", n)
	}
	if n := count(`SELECT count(*) FROM res WHERE packed IS NULL AND (sig, sig2, sig3, present) <> (0, 0, 0, 0)`); n != 0 {
		t.Errorf("%d records have the signature of values that an earlier release replaced", n)
	}
	if n := found(site, "jones"); n != 1 {
		t.Errorf("%d records have the text of an earlier release, want 1", n)
	}
	renew(postgres.Waiting)
	stale := open(t, pool, key, postgres.Options{})
	endSession(t, pool, earlier)
	renew(postgres.Waiting) // a rollback is possible
	execute(t, pool, `UPDATE requirement SET texts_until = now()`)
	// An earlier release that is in use again writes, and erases a site.
	execute(t, pool, `UPDATE res SET packed = NULL WHERE id = 'd'; INSERT INTO unpacked VALUES (1000000, 1)`)
	renew(postgres.Waiting)
	if n := count(`SELECT count(*) FROM requirement WHERE texts_until > now() + interval '6 days'`); n != 1 {
		t.Error("the time for a rollback does not begin anew after a write of an earlier release")
	}
	execute(t, pool, `UPDATE requirement SET texts_until = now()`)
	renew(postgres.Current)
	if n := count(`SELECT count(to_regclass('ix_str')) + count(to_regclass('unpacked')) FROM sites`); n != 0 {
		t.Error("the tables of earlier releases are still there")
	}
	if level := count(`SELECT oldest_server FROM requirement`); level != schema.Server {
		t.Errorf("servers of level %d may use the database, want %d", level, schema.Server)
	}
	for _, s := range []*postgres.Store{site, stale} {
		if n := found(s, "smith"); n != 2 {
			t.Errorf("%d records found by text, want 2", n)
		}
	}
	writeAll(t, stale, named("d", "brown"), named("e", "brown"))
	if n := found(site, "brown") + 10*found(site, "smith"); n != 12 {
		t.Errorf("records by two texts: %d, want 2 and 1", n)
	}
}

// presence is what a site finds by the presence and by the absence of code.
type presence struct{ Present, Absent []string }

func presenceIn(t *testing.T, site *postgres.Store) (found presence) {
	t.Helper()
	ids := func(where store.Condition) (ids []string) {
		page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: where, Sort: []store.Sort{{Field: store.SortCreated, Descending: true}}, Count: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			ids = append(ids, r.Key.ID)
		}
		slices.Sort(ids)
		return ids
	}
	code := store.Present{Param: "code"}
	return presence{ids(code), ids(store.Not{Condition: code})}
}

// endUpgrade drops what earlier releases read.
func endUpgrade(t *testing.T, pool *pgxpool.Pool, site *postgres.Store) {
	t.Helper()
	site.SetRenewPause(0)
	for _, want := range []postgres.Renewal{postgres.Waiting, postgres.Current} {
		if state, err := site.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != want {
			t.Fatalf("renewed: %v, %v, want %v", state, err, want)
		}
		execute(t, pool, `UPDATE requirement SET texts_until = now()`)
	}
}

// TestPresenceAfterUpgrade searches by presence when the upgrade has ended, also by a server that does
// not know that. An earlier release has deleted a record without texts, and has created a record again
// that this release had deleted.
func TestPresenceAfterUpgrade(t *testing.T) {
	t.Parallel()
	t.Run("batches", func(t *testing.T) { testPresenceAfterUpgrade(t, (*postgres.Store).BatchEveryWrite) })
	t.Run("single writes", func(t *testing.T) { testPresenceAfterUpgrade(t, func(*postgres.Store) {}) })
}

func testPresenceAfterUpgrade(t *testing.T, prepare func(*postgres.Store)) {
	key := uuid.NewString()
	pool := upgraded(t, key)
	const body = `{"Tokens":{"code":[{"System":"s","Code":"1"}]},"Salt":%d}`
	coded := func(id string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: fmt.Appendf(nil, body, id[0])}}
	}
	other := store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "other"}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"smith","Original":"smith"}]}}`)}}
	site, stale := open(t, pool, key, postgres.Options{}), open(t, pool, key, postgres.Options{})
	prepare(site)
	writeAll(t, site, coded("alive"), coded("deleted"), coded("recreated"), other)
	execute(t, pool, `DELETE FROM ix_tok WHERE rid = (SELECT rid FROM res WHERE id = 'deleted');
		UPDATE res SET ver = ver + 1, deleted = true, marks = '{}', body = '\x00' WHERE id = 'deleted';
		CREATE TABLE earlier AS SELECT * FROM res WHERE id = 'recreated';
		CREATE TABLE earlier_tok AS SELECT * FROM ix_tok WHERE rid IN (SELECT rid FROM earlier)`)
	writeAll(t, site, store.Op{Kind: store.Delete, Key: store.Key{Type: patient, ID: "recreated"}})
	execute(t, pool, `UPDATE res r SET ver = r.ver + 1, deleted = false, ixsum = e.ixsum, marks = e.marks, labelled = e.labelled, labels = e.labels, links = e.links, body = e.body
			FROM earlier e WHERE r.self = e.self;
		INSERT INTO ix_tok SELECT * FROM earlier_tok`)
	want := presence{[]string{"alive", "recreated"}, []string{"other"}}
	if diff := cmp.Diff(want, presenceIn(t, site)); diff != "" {
		t.Errorf("found during the upgrade (-want +got):\n%s", diff)
	}
	endUpgrade(t, pool, site)
	writeAll(t, site, coded("since"))
	want.Present = []string{"alive", "recreated", "since"}
	for name, s := range map[string]*postgres.Store{"site": site, "stale": stale} {
		for _, limit := range []int{0, 1} { // as lists, and by a scan
			if limit > 0 {
				s.SetPlanLimits(limit, limit, limit)
			}
			if diff := cmp.Diff(want, presenceIn(t, s)); diff != "" {
				t.Errorf("%s, limit %d: found after the upgrade (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}

// TestForgetUnpacked shows that a write by an earlier release is not forgotten if it ends after a pass has
// begun.
func TestForgetUnpacked(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	site := open(t, pool, key, postgres.Options{})
	writeAll(t, site, store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "a"}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"x","Original":"X"}]}}`)}})
	const asEarlier = `UPDATE res SET packed = NULL`
	execute(t, pool, asEarlier)
	must(t, site.Reindex(t.Context(), store.Key{}, func(postgres.Reindexed) {})) // its note remains
	earlier, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := earlier.Exec(t.Context(), asEarlier); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() {
		_, err := site.Renew(t.Context(), 1, func(postgres.Reindexed) {})
		renewed <- err
	}()
	for isWaiting := false; !isWaiting && len(renewed) == 0; {
		time.Sleep(time.Millisecond)
		must(t, pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&isWaiting))
	}
	must(t, earlier.Commit(t.Context()))
	must(t, <-renewed)
	var packed bool
	if err := pool.QueryRow(t.Context(), `SELECT bool_and(r.packed IS NOT NULL) OR EXISTS (SELECT FROM unpacked) FROM res r`).Scan(&packed); err != nil || !packed {
		t.Errorf("a record without rows in ix_text is forgotten: %v, %v", packed, err)
	}
}

// TestRestoreUnpacked restores other metadata of a record that an earlier release wrote.
func TestRestoreUnpacked(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	site := open(t, pool, key, postgres.Options{})
	writeAll(t, site, store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "a"}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"x","Original":"X"}]}}`)}})
	page, err := site.Dump(t.Context(), store.DumpQuery{MaxRecords: 10, MaxBytes: 1 << 20})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	dumped := page.Records
	dumped[0].Versions[0].Metadata, dumped[0].Versions[0].MetadataVersion = []byte(`{"labels":{"a":"b"}}`), 1
	execute(t, pool, `UPDATE res SET packed = NULL`)
	results, err := site.Restore(t.Context(), dumped)
	if err != nil || len(results) != 1 || results[0].Err != nil || results[0].Outcome != store.Updated {
		t.Fatalf("restored: %+v, %v", results, err)
	}
	var texts int
	var packed bool
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM ix_text), bool_and(packed IS NOT NULL) FROM res`).Scan(&texts, &packed); err != nil || packed && texts != 1 {
		t.Errorf("%d texts of a record that counts as packed: %v, %v", texts, packed, err)
	}
}

// TestTextForms searches for original texts whose folded form is empty or very long.
func TestTextForms(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), postgres.Options{Extractor: extraction.Extractor{}})
	writeAll(t, site, store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "a"}, Body: store.Body{JSON: []byte(`{"resourceType":"Patient","name":[{"family":"a"}]}`)}})
	for _, match := range []store.TextMatch{store.StartsWith, store.Exactly, store.StartsExactly, store.Contains} {
		for _, text := range []string{" ", "\u0301", strings.Repeat("½", 300), strings.Repeat("a", 2000)} {
			for _, facet := range []store.Condition{nil, store.TokenIs{Param: "gender", Code: new("male")}} {
				where := store.All{store.TextIs{Param: "family", Match: match, Text: text}}
				if facet != nil {
					where = append(where, facet)
				}
				page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: where, Count: 10, Total: store.TotalAccurate})
				if err != nil || len(page.Records) > 0 && text != "" {
					t.Errorf("match %d of %.10q: %d records, %v", match, text, len(page.Records), err)
				}
			}
		}
	}
}

// TestWriteDuringReindex updates a record of an earlier release that was reindexed after the update
// was decided.
func TestWriteDuringReindex(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	site := open(t, pool, key, postgres.Options{})
	text := func(name string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "a"}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"` + name + `","Original":"X"}]}}`)}}
	}
	writeAll(t, site, text("x"))
	execute(t, pool, `UPDATE res SET packed = NULL`)
	_, errs, _ := site.WriteTogether(t.Context(), []store.Op{text("y")}, func() {
		must(t, site.Reindex(t.Context(), store.Key{}, func(postgres.Reindexed) {}))
	})
	if !errors.Is(errs[0], postgres.ErrStale) {
		t.Errorf("the update of a record that was reindexed: %v", errs[0])
	}
	writeAll(t, site, text("y"))
	var vals string
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(convert_from(val, 'UTF8'), ' ') FROM ix_text`).Scan(&vals); err != nil || vals != "y" {
		t.Errorf("texts %q, %v", vals, err)
	}
}

// TestWriteAfterUpgrade writes by a server that does not know yet that another one has dropped the
// tables of earlier releases.
func TestWriteAfterUpgrade(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	site, stale := open(t, pool, key, postgres.Options{}), open(t, pool, key, postgres.Options{})
	text := func(id string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"x","Original":"X"}]}}`)}}
	}
	writeAll(t, stale, text("a"))
	execute(t, pool, `UPDATE requirement SET texts_until = now()`)
	if state, err := site.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != postgres.Current {
		t.Fatalf("renewed: %v, %v", state, err)
	}
	writeAll(t, stale, text("a"), text("b"))
	page, err := stale.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.TextIs{Param: "name", Match: store.Exactly, Text: "X"}, Count: 10})
	if err != nil || len(page.Records) != 2 {
		t.Errorf("%d records, %v", len(page.Records), err)
	}
}
