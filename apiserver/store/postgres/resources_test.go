package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// direct runs statements without the proxy and the pool.
func (b *broken) direct(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.server.URL(database))
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		must(t, err)
	}
}

// occupy takes all connections of the server.
func (b *broken) occupy(t *testing.T) {
	b.pool.Reset()
	await(t, "the pool is empty", func() error {
		if n := b.pool.Stat().TotalConns(); n > 0 {
			return fmt.Errorf("it has %d connections", n)
		}
		return nil
	})
	for {
		conn, err := pgx.Connect(t.Context(), b.server.URL(database))
		if err != nil {
			break
		}
		b.occupied = append(b.occupied, conn)
	}
	if len(b.occupied) == 0 {
		t.Fatal("not one connection could be taken")
	}
}

func (b *broken) vacate(t *testing.T) {
	for _, conn := range b.occupied {
		must(t, conn.Close(t.Context()))
	}
	b.occupied = nil
}

func (b *broken) onlyRead(t *testing.T) {
	b.direct(t, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	await(t, "the server reads only", func() error {
		if err := b.writes(t)["write"](); err == nil {
			return errors.New("it writes")
		}
		return nil
	})
}

func (b *broken) writeAgain(t *testing.T) {
	b.direct(t, "SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
}

// fillUp prevents the server's files from growing, which has the effect of a full disk on tables.
// WAL files have their full size already.
func (b *broken) fillUp(t *testing.T) {
	b.direct(t, "CHECKPOINT")
	b.limitFiles(t, strconv.Itoa(16<<20))
	store := b.large(t)["load"]
	for stored := 0; store() == nil; stored++ {
		if stored > 1000 {
			t.Fatal("200 MB fit into files of 16 MB")
		}
	}
}

func (b *broken) makeRoom(t *testing.T) { b.limitFiles(t, "unlimited") }

// limitFiles limits the file size of all processes of the server. It runs as the server's user,
// because other users may not.
func (b *broken) limitFiles(t *testing.T, bytes string) {
	t.Helper()
	for _, pid := range b.processes(t) {
		process := "/proc/" + strconv.Itoa(pid)
		info, err := os.Stat(process)
		if err != nil {
			continue // it has ended
		}
		cmd := exec.CommandContext(t.Context(), "prlimit", "--pid", strconv.Itoa(pid), "--fsize="+bytes+":unlimited")
		if owner := info.Sys().(*syscall.Stat_t); int(owner.Uid) != os.Getuid() {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		}
		if output, err := cmd.CombinedOutput(); err != nil {
			if _, gone := os.Stat(process); gone == nil {
				t.Fatalf("bound the files of %d: %v: %s", pid, err, output)
			}
		}
	}
}

// processes returns the ids of the server and its children.
func (b *broken) processes(t *testing.T) []int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.server.URL(database))
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var file string
	must(t, conn.QueryRow(t.Context(), "SELECT pg_read_file('postmaster.pid')").Scan(&file))
	server, _, _ := strings.Cut(file, "\n")
	all, err := strconv.Atoi(server)
	must(t, err)
	found := []int{all}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == server {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must(t, err)
			found = append(found, pid)
		}
	}
	return found
}

// noise returns text that does not compress.
func noise(n int) string {
	bytes := make([]byte, n/2)
	_, _ = rand.Read(bytes) // never fails
	return hex.EncodeToString(bytes)
}
