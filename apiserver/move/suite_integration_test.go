package move_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// pool is a pool of a database that the tests share.
var pool *pgxpool.Pool

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "paddock-move")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		ctx := context.Background()
		server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
		if err == nil {
			defer func() { _ = server.Stop() }()
			pool, err = connect(ctx, server.URL("postgres")+"&statement_timeout=60s") // a busy machine ends no statement
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer pool.Close()
		return m.Run()
	}())
}

// connect migrates a database and returns a pool of it.
func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := schema.Migrate(ctx, conn); err != nil {
		return nil, err
	}
	return postgres.Connect(ctx, url)
}
