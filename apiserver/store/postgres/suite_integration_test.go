package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// server is what the tests of this package share, and shared a pool of its database.
var (
	// server is used by all tests of this package. shared is a pool of its database.
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
			shared, err = postgres.Connect(ctx, unhurried(server.URL(database)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.Close()
		return m.Run()
	}())
}

// unhurried returns a connection string whose statements may take a minute, so that a busy machine ends none.
func unhurried(uri string) string { return uri + "&statement_timeout=60s" }

func migrate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = schema.Migrate(ctx, conn)
	return err
}

func open(t testing.TB, pool *pgxpool.Pool, key string, options postgres.Options) *postgres.Store {
	t.Helper()
	if options.Extractor == nil {
		options.Extractor = storetest.Extractor{}
	}
	if options.QueryTimeout == 0 && options.Replicas == nil { // the wait for a replica is a part of it
		options.QueryTimeout = time.Minute
	}
	site, err := postgres.Open(t.Context(), pool, key, options)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// withFacets are the options of a store for the suite, with a facet, common codes, and a union of tokens.
func withFacets(others ...string) postgres.Options {
	return postgres.Options{Extractor: storetest.Extractor{Facets: append(others, storetest.CommonCodes[0].Param), Common: storetest.CommonCodes, PartsOf: storetest.TokenParts}}
}

func TestStore(t *testing.T) {
	t.Parallel()
	pool := watched(t)
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		return open(t, pool, key, withFacets()), open(t, pool, key, withFacets())
	})
}

// TestStoreOfLongLists runs the suite with the branches for long lists.
func TestStoreOfLongLists(t *testing.T) {
	t.Parallel()
	pool := watched(t)
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		options := withFacets("identifier")
		first, second := open(t, pool, key, options), open(t, pool, key, options)
		first.SetPlanLimits(4, 9, 2)
		second.SetPlanLimits(1, 3, 0)
		return first, second
	})
}

// TestStoreOfBatches runs the suite with the statement for batches of writes, also for single ones.
func TestStoreOfBatches(t *testing.T) {
	t.Parallel()
	pool := watched(t)
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		first, second := open(t, pool, key, postgres.Options{}), open(t, pool, key, postgres.Options{})
		first.BatchEveryWrite()
		second.BatchEveryWrite()
		return first, second
	})
}

// extracting is an Extractor of another release, which finds other values.
type extracting struct {
	store.Extractor
	extract func(body []byte) []store.IndexValue
}

// extractingOthers returns an Extractor that differs from the suite's in the values of records.
func extractingOthers(extract func(body []byte) []store.IndexValue) extracting {
	return extracting{storetest.Extractor{}, extract}
}

func (x extracting) Extract(_ string, body []byte) []store.IndexValue { return x.extract(body) }

// TestPollingOfReplicas polls one replica while several write, and shows that no write is missed.
func TestPollingOfReplicas(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	first, second := open(t, shared, key, postgres.Options{}), open(t, shared, key, postgres.Options{})
	storetest.Poll(t, []store.Store{first, second}, second)
}

// connectNew creates a database, migrates it, and returns a pool that is closed when the test ends.
func connectNew(t *testing.T, name string) *pgxpool.Pool {
	t.Helper()
	if _, err := shared.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), server.URL(name)); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Connect(t.Context(), unhurried(server.URL(name)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
