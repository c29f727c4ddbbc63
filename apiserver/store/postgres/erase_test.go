package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestErase shows that a site's rows are deleted from every table, and those of other sites from
// none.
func TestErase(t *testing.T) {
	gone, stays := uuid.NewString(), uuid.NewString()
	exercise(t, open(t, shared, gone, postgres.Options{}))
	exercise(t, open(t, shared, stays, postgres.Options{}))
	tables := names(t, `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'site' WHERE c.relkind = 'r'`)
	number := func(key string) (site int) {
		t.Helper()
		if err := shared.QueryRow(t.Context(), `SELECT site FROM sites WHERE key = $1`, key).Scan(&site); err != nil {
			t.Fatal(err)
		}
		return site
	}
	counts := func(site int) map[string]int {
		t.Helper()
		found := map[string]int{}
		for _, table := range tables {
			var rows int
			if err := shared.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s WHERE site = $1`, table), site).Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows > 0 {
				found[table] = rows
			}
		}
		return found
	}
	erased, other := number(gone), number(stays)
	before := counts(other)
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows := counts(erased)
	if err := schema.Fence(t.Context(), conn, gone); err != nil {
		t.Fatal(err)
	}
	if err := schema.Erase(t.Context(), conn, gone); !errors.Is(err, schema.ErrFenced) {
		t.Errorf("the site is fenced, and the error is %v", err)
	}
	if diff := cmp.Diff(rows, counts(erased)); diff != "" {
		t.Errorf("rows of a fenced site (-before +after):\n%s", diff)
	}
	if err := schema.Unfence(t.Context(), conn, gone); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to erase
		if err := schema.Erase(t.Context(), conn, gone); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]int{}, counts(erased)); diff != "" {
		t.Errorf("rows of the erased site (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, counts(other)); diff != "" {
		t.Errorf("rows of another site (-before +after):\n%s", diff)
	}
}

// TestEraseInEmptyDatabase erases a site in a database without tables, which can take the place of one that no
// longer exists.
func TestEraseInEmptyDatabase(t *testing.T) {
	if _, err := shared.Exec(t.Context(), "CREATE DATABASE erase_empty"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.URL("erase_empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, do := range []func(context.Context, *pgx.Conn, string) error{schema.Unfence, schema.DropChangesOf, schema.Erase} {
		if err := do(t.Context(), conn, uuid.NewString()); err != nil {
			t.Error(err)
		}
	}
}
