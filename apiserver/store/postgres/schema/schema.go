// Package schema creates and migrates the tables of the Postgres engine, by embedded migrations. It
// also erases the rows of a site, fences them, and logs their changes. It does not depend on the
// engine.
package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"
	"k8s.io/apimachinery/pkg/util/wait"
)

// VersionTable is the table in which tern records the version of a database's schema.
const VersionTable = "paddock_schema_version"

// Server is the level of this release. The column oldest_server of a database has the least level
// that may use the database. A release whose schema older releases cannot use raises both numbers.
const Server = 3

// ApplicationName is the application_name of the connections of servers of this level.
const ApplicationName = "paddock-3"

// ErrNewer means that the database requires a higher server level than Server, because a later release
// has migrated the database.
var ErrNewer = errors.New("a later release has changed the tables in a way that this release does not support; upgrade Paddock")

//go:embed migrations/*.sql
var migrations embed.FS

// Newest is the version of the schema to which Migrate migrates a database. Newest is also the least
// version that this release can use.
var Newest = func() int32 {
	files, _ := fs.Glob(migrations, "migrations/*.sql") // fails only for an invalid pattern
	return int32(len(files))
}()

// Migrate migrates a database to the newest schema and returns its version. It holds an advisory
// lock, so that concurrent callers wait for each other. It does not change a database that has a
// later version, and returns that version. Errors: ErrNewer.
func Migrate(ctx context.Context, conn *pgx.Conn) (int32, error) {
	migrator, err := load(ctx, conn)
	if err != nil {
		return 0, err
	}
	version, err := migrator.GetCurrentVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if version < Newest {
		if err := migrateRiver(ctx, conn); err != nil {
			return 0, err
		}
		if err := whileLocked(ctx, func() error { return migrator.Migrate(ctx) }); err != nil {
			return 0, fmt.Errorf("migrate the schema: %w", err)
		}
		version = Newest
	}
	var oldest int
	if err := conn.QueryRow(ctx, `SELECT oldest_server FROM requirement`).Scan(&oldest); err != nil {
		return 0, fmt.Errorf("read the server level that the schema requires: %w", err)
	}
	if oldest > Server {
		return version, ErrNewer
	}
	return version, nil
}

func load(ctx context.Context, conn *pgx.Conn) (*migrate.Migrator, error) {
	migrator, err := migrate.NewMigrator(ctx, conn, VersionTable)
	if err != nil {
		return nil, fmt.Errorf("prepare to migrate the schema: %w", err)
	}
	migrator.OnStart = func(int32, string, string, string) {
		_, _ = conn.Exec(ctx, lockTimeout) // If this fails, the transaction is aborted and the migration returns an error.
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = migrator.LoadMigrations(files)
	}
	if err != nil {
		return nil, fmt.Errorf("load the migrations: %w", err)
	}
	return migrator, nil
}

// lockTimeout is the statement that limits the time for which a migration waits for a lock.
// Statements of requests wait behind the migration for that time. The time is less than
// deadlock_timeout (1 s), after which Postgres would cancel either the migration or a request if they
// wait for each other.
const lockTimeout = `SET LOCAL lock_timeout = '500ms'`

// The SQLSTATEs of a statement that did not get a lock (PostgreSQL manual, appendix A).
const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// patience is the schedule of attempts of a migration, or of another change of tables, that does not
// get its locks: 10 attempts, with pauses that grow from 0.1 s to some 3 s. After the last one, it
// fails. The controller reports the error of a migration in the condition SchemaReady.
var patience = wait.Backoff{Steps: 10, Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.5}

// whileLocked repeats a migration as long as other transactions hold locks that it needs, according
// to patience. It returns the error of the last attempt.
func whileLocked(ctx context.Context, migrate func() error) error {
	err := ctx.Err()
	// err, the error of the last attempt, is more useful than the error that patience is exhausted.
	_ = wait.ExponentialBackoffWithContext(ctx, patience, func(context.Context) (done bool, _ error) {
		err = migrate()
		var answer *pgconn.PgError
		locked := errors.As(err, &answer) && (answer.Code == lockNotAvailable || answer.Code == deadlockDetected)
		return !locked, nil
	})
	return err
}
