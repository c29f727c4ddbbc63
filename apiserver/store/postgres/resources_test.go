package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
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
	await(t, "all connections are taken", func() error { // Postgres ends a session after its connection
		for len(b.occupied) < maxConnections {
			conn, err := pgx.Connect(t.Context(), b.server.URL(database))
			if err != nil {
				return err
			}
			b.occupied = append(b.occupied, conn)
		}
		return nil
	})
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
	must(t, b.server.LimitFiles(localpostgres.WALSegmentSize))
	store := b.large(t)["load"]
	for stored, failed := 0, 0; failed < 2; stored++ { // one may fail because it took too long
		if failed++; store() == nil {
			failed = 0
		}
		if stored > 1000 {
			t.Fatal("200 MB fit into files of 16 MB")
		}
	}
}

func (b *broken) makeRoom(t *testing.T) { must(t, b.server.RemoveLimit()) }

// noise returns text that does not compress.
func noise(n int) string {
	bytes := make([]byte, n/2)
	_, _ = rand.Read(bytes) // never fails
	return hex.EncodeToString(bytes)
}
