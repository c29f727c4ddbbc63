package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestDataID shows that the ID of the data of a site stays while the data exists, and that a site which is
// created again has another one, although its key is the same.
func TestDataID(t *testing.T) {
	key := uuid.NewString()
	id := func(database string) string {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		id, err := schema.DataID(t.Context(), conn, key)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if got := id(database); got != "" {
		t.Errorf("before the site exists: %q", got)
	}
	if got := id("postgres"); got != "" {
		t.Errorf("in a database without tables: %q", got)
	}
	exercise(t, open(t, shared, key, postgres.Options{}))
	first := id(database)
	if again := id(database); first == "" || again != first {
		t.Errorf("got %q, then %q", first, again)
	}
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := schema.Erase(t.Context(), conn, key); err != nil {
		t.Fatal(err)
	}
	open(t, shared, key, postgres.Options{})
	if second := id(database); second == "" || second == first {
		t.Errorf("created again: %q, the same as before: %t", second, second == first)
	}
}
