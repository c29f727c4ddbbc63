package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
	"github.com/paddock-health/paddock/hack/localpostgres"
)

// server is what the tests of this package share, and shared a pool of its database.
var (
	server *localpostgres.Server
	shared *pgxpool.Pool
)

const database = "postgres"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "paddock-postgres")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		ctx := context.Background()
		server, err = localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
		if err == nil {
			defer func() { _ = server.Stop() }()
			err = migrate(ctx, server.URL(database))
		}
		if err == nil {
			shared, err = postgres.Connect(ctx, server.URL(database))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.Close()
		return m.Run()
	}())
}

func migrate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = schema.Migrate(ctx, conn)
	return err
}

func open(t testing.TB, pool *pgxpool.Pool, key string, options postgres.Options) *postgres.Site {
	t.Helper()
	if options.Extract == nil {
		options.Extract = storetest.Extract
	}
	site, err := postgres.Open(t.Context(), pool, key, options)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		return open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	})
}

// TestStoreOfLongLists takes the ways that searches take when lists are long.
func TestStoreOfLongLists(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		options := postgres.Options{Facet: func(param string) bool { return param == "identifier" }, Fold: fold}
		first, second := open(t, shared, key, options), open(t, shared, key, options)
		first.SetBounds(4, 9, 2, 2)
		second.SetBounds(1, 3, 1, 0)
		return first, second
	})
}

// fold is how the suite folds its texts.
func fold(text string) string { return strings.ReplaceAll(strings.ToLower(text), "é", "e") }

// TestPollingOfReplicas polls one replica while several write: nothing is lost whoever writes.
func TestPollingOfReplicas(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	first, second := open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	storetest.Poll(t, []store.Store{first, second}, second)
}
