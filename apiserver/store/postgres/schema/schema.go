// Package schema holds the tables of the Postgres engine as embedded migrations, and brings
// a database to them. It knows what the tables are, not what the engine does with them.
package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"
)

// VersionTable is where tern remembers how far a database is.
const VersionTable = "paddock_schema_version"

// Server is what this build knows of the schema. A database that asks for more, because
// a later build contracted its schema, must not be used.
const Server = 1

// ErrNewer says that a later build changed the tables so that this one must not use them.
var ErrNewer = errors.New("a later release changed the tables: this one may not use them")

//go:embed migrations/*.sql
var migrations embed.FS

// Newest is the version that Migrate leaves, and the least that this build needs.
var Newest = func() int32 {
	files, _ := fs.Glob(migrations, "migrations/*.sql") // the pattern is right
	return int32(len(files))
}()

// Migrate brings a database to the newest schema, under an advisory lock: of several callers
// one works and the others wait. A database that a later build migrated further stays as it
// is. It returns the version it left. Errors: ErrNewer.
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
		if err := migrator.Migrate(ctx); err != nil {
			return 0, fmt.Errorf("migrate the schema: %w", err)
		}
		version = Newest
	}
	var oldest int
	if err := conn.QueryRow(ctx, `SELECT oldest_server FROM requirement`).Scan(&oldest); err != nil {
		return 0, fmt.Errorf("read what the schema asks for: %w", err)
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
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = migrator.LoadMigrations(files)
	}
	if err != nil {
		return nil, fmt.Errorf("load the migrations: %w", err)
	}
	return migrator, nil
}
