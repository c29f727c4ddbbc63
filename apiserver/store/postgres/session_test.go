package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestSession ends the session of a pool that has a lock. The pool never writes again, also after another
// pool has had the lock and has returned it.
func TestSession(t *testing.T) {
	t.Parallel()
	ctx, key, lock := t.Context(), uuid.NewString(), uuid.NewString()
	begin := func() (*pgxpool.Pool, error) {
		config := shared.Config()
		postgres.ConfigSession(config, lock)
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool, pool.Ping(ctx)
	}
	first, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	put := func(pool *postgres.Store, id string) error {
		_, err := pool.Write(ctx, []store.Op{{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: []byte(`{}`)}}})
		return err
	}
	site := open(t, first, key, postgres.Options{})
	if err := put(site, "before"); err != nil {
		t.Fatal(err)
	}
	if _, err := begin(); !errors.Is(err, postgres.ErrLocked) {
		t.Fatalf("a second session with the lock: %v", err)
	}
	var pid int32
	if err := first.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, pid); err != nil {
		t.Fatal(err)
	}
	second, err := begin()
	if err != nil {
		t.Fatalf("the lock is not free after its session has ended: %v", err)
	}
	if err := put(open(t, second, key, postgres.Options{}), "between"); err != nil {
		t.Fatal(err)
	}
	second.Close()
	for range 3 {
		if err := put(site, "after"); err == nil {
			t.Error("a write after the session has ended")
		}
	}
}
