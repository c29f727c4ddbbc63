package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// TestBackup takes a base backup (PostgreSQL manual, "Making a Base Backup Using the Low Level API")
// of a database while a site is written to, and starts another server on it. Each write that was
// acknowledged before the end of the backup must be there, with its history and its claims.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeReachable(t, dir)
	source, err := localpostgres.Start(t.Context(), localpostgres.Options{Dir: filepath.Join(dir, "source"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Stop() })
	if err := migrate(t.Context(), source.URL(database)); err != nil {
		t.Fatal(err)
	}
	key := uuid.NewString()
	site := openAt(t, source, key)
	claimed := store.Op{
		Kind: store.Put, Key: store.Key{Type: patient, ID: "claimed"}, Method: store.MethodPut, Body: counterOp("claimed", 1).Body,
		Claims: []store.Claim{{Line: "room 1"}},
	}
	writeOne(t, site, claimed)
	writeOne(t, site, counterOp("gone", 1))
	writeOne(t, site, store.Op{Kind: store.Delete, Key: store.Key{Type: patient, ID: "gone"}, Method: store.MethodDelete})

	var acknowledged atomic.Int64
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 1; ; {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			switch _, err := site.Write(t.Context(), []store.Op{counterOp("busy", n)}); {
			case err == nil:
				acknowledged.Store(int64(n))
				n++
			case !errors.Is(err, store.ErrUnavailable): // that write took too long, and is repeated
				stopped <- err
				return
			}
		}
	}()
	target := filepath.Join(dir, "target")
	before := baseBackup(t, source, filepath.Join(dir, "source"), target, &acknowledged)
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if err := source.Stop(); err != nil {
		t.Fatal(err)
	}

	restored, err := localpostgres.Start(t.Context(), localpostgres.Options{Dir: target, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = restored.Stop() })
	site = openAt(t, restored, key)
	busy, err := site.Get(t.Context(), store.Key{Type: patient, ID: "busy"})
	if err != nil || busy.Version < before {
		t.Errorf("version %d (%v), want at least %d, which was acknowledged before the end of the backup", busy.Version, err, before)
	}
	history, err := site.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: patient, ID: "busy"}})
	if err != nil || history.Total != busy.Version {
		t.Errorf("the history has %d versions (%v), want %d", history.Total, err, busy.Version)
	}
	if _, err := site.Get(t.Context(), store.Key{Type: patient, ID: "gone"}); !store.IsAbsent(err) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted record: got %v, want a DeletedError", err)
	}
	rival := claimed
	rival.Key.ID = "rival"
	var claim *store.ClaimError
	if _, err := site.Write(t.Context(), []store.Op{rival}); !errors.As(err, &claim) {
		t.Errorf("a claim that was held: got %v, want a ClaimError", err)
	}
	writeOne(t, site, counterOp("busy", -1))
}

// makeReachable lets the user of Postgres reach a folder that only this user may enter.
func makeReachable(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a test's folder
			t.Fatal(err)
		}
	}
}

func openAt(t *testing.T, at *localpostgres.Server, key string) *postgres.Store {
	t.Helper()
	pool, err := postgres.Connect(t.Context(), at.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return open(t, pool, key, postgres.Options{})
}

func writeOne(t *testing.T, site *postgres.Store, op store.Op) {
	t.Helper()
	if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
		t.Fatal(err)
	}
}

// baseBackup copies the data of a server into the folder of another one. It returns the number that
// was acknowledged before the backup ended.
func baseBackup(t *testing.T, of *localpostgres.Server, from, to string, acknowledged *atomic.Int64) int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), of.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `SELECT pg_backup_start('drill', fast => true)`); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // the user of Postgres must enter it
		t.Fatal(err)
	}
	copyData(t, filepath.Join(from, "data"), filepath.Join(to, "data"))
	for first := acknowledged.Load(); acknowledged.Load() < first+20; { // writes that only the WAL has
		if _, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.01)`); err != nil {
			t.Fatal(err)
		}
	}
	before := acknowledged.Load()
	var label string
	if err := conn.QueryRow(t.Context(), `SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)`).Scan(&label); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(to, "data")
	if err := errors.Join(os.RemoveAll(filepath.Join(data, "pg_wal")), os.Remove(filepath.Join(data, "postmaster.pid"))); err != nil {
		t.Fatal(err)
	}
	copyData(t, filepath.Join(from, "data", "pg_wal"), filepath.Join(data, "pg_wal"))
	if err := os.WriteFile(filepath.Join(data, "backup_label"), []byte(label), 0o644); err != nil { //nolint:gosec // Postgres reads it
		t.Fatal(err)
	}
	if owner, err := exec.CommandContext(t.Context(), "chown", "--reference="+filepath.Join(data, "PG_VERSION"), filepath.Join(data, "backup_label"), to).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, owner)
	}
	return before
}

// copyData copies a folder of a running server. Files may disappear during the copy.
func copyData(t *testing.T, from, to string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput()
	for line := range strings.Lines(string(output)) {
		if !strings.Contains(line, "No such file") {
			t.Fatalf("copy %s: %v: %s", from, err, output)
		}
	}
	if err != nil && len(output) == 0 {
		t.Fatal(fmt.Errorf("copy %s: %w", from, err))
	}
}
