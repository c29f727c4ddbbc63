package sites

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// startPostgres starts a Postgres server that ends with the test.
func startPostgres(t *testing.T) *localpostgres.Server {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), localpostgres.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// siteKey is the key of the Site of openDatabase.
const siteKey = "site"

// openDatabase creates and migrates a database, and returns the store of a Site in it.
func openDatabase(t *testing.T, server *localpostgres.Server, name string) *database {
	t.Helper()
	ctx := t.Context()
	uri, err := server.CreateDatabase(ctx, name, name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, uri)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := schema.Migrate(ctx, conn); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Connect(ctx, uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &database{key: siteKey, pool: pool, extractor: store.NoExtractor}
}
