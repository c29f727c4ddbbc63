package schema

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrateRiver migrates the tables of River to the version that this release needs. It leaves newer
// tables as they are. It must be called before the migrations of this package, so that a database
// with their newest version always has River's tables.
func migrateRiver(ctx context.Context, conn *pgx.Conn) (err error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("prepare the migration of River's tables: %w", err)
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, riverLock); err != nil {
		return fmt.Errorf("lock the migration of River's tables: %w", err)
	}
	defer func() {
		if _, unlock := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, riverLock); err == nil && unlock != nil {
			err = fmt.Errorf("unlock the migration of River's tables: %w", unlock)
		}
	}()
	for more := true; more; {
		// Each migration needs a transaction of its own, because a value that is added to an enum type
		// cannot be used in the same transaction.
		err := whileLocked(ctx, func() error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, lockTimeout); err != nil {
					return err
				}
				done, err := migrator.MigrateTx(ctx, tx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{MaxSteps: 1}) //nolint:staticcheck // the warning is about several migrations in one transaction
				more = err == nil && len(done.Versions) > 0
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("migrate River's tables: %w", err)
		}
	}
	return nil
}
