// Package schema holds the tables of the Postgres engine as embedded migrations, and brings
// a database to them. It knows what the tables are, not what the engine does with them.
package schema

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"
)

// versionTable is where tern remembers how far a database is.
const versionTable = "paddock_schema_version"

// Server is what this build knows of the schema. A database that asks for more, because
// a later build contracted its schema, must not be used.
const Server = 1

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings a database to the newest schema, under an advisory lock: of several callers
// one works and the others wait. It returns the version it left.
func Migrate(ctx context.Context, conn *pgx.Conn) (int32, error) {
	migrator, err := load(ctx, conn)
	if err != nil {
		return 0, err
	}
	if err := migrator.Migrate(ctx); err != nil {
		return 0, fmt.Errorf("migrate the schema: %w", err)
	}
	return Version(ctx, conn)
}

// Version is how far a database is; 0 when it is empty.
func Version(ctx context.Context, conn *pgx.Conn) (int32, error) {
	migrator, err := load(ctx, conn)
	if err != nil {
		return 0, err
	}
	version, err := migrator.GetCurrentVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// Newest is the version that Migrate leaves.
func Newest() (int32, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	return int32(len(files)), err
}

func load(ctx context.Context, conn *pgx.Conn) (*migrate.Migrator, error) {
	migrator, err := migrate.NewMigrator(ctx, conn, versionTable)
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
