package schema

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// DropWideTexts drops ix_str, the table of texts of releases before server level 2, and what keeps
// it in step with ix_text. From then on, only servers of level 2 can use the database. It returns
// false, and changes nothing, as long as a record may lack its rows in ix_text, a server of an earlier
// release is connected, or the time for a rollback (requirement.texts_until) has not ended. It waits
// for locks as a migration does.
func DropWideTexts(ctx context.Context, conn *pgx.Conn) (done bool, err error) {
	err = whileLocked(ctx, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			done, err = dropWideTexts(ctx, tx)
			return err
		})
	})
	return done, err
}

func dropWideTexts(ctx context.Context, tx pgx.Tx) (done bool, err error) {
	if _, err := tx.Exec(ctx, lockTimeout); err != nil {
		return false, err
	}
	const find = `SELECT to_regclass('ix_str') IS NULL, (SELECT texts_until <= now() FROM requirement) AND NOT EXISTS (SELECT FROM sites WHERE layout < 1) AND NOT EXISTS (
		SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'paddock')`
	var gone, ready bool
	if err := tx.QueryRow(ctx, find).Scan(&gone, &ready); err != nil || gone || !ready {
		return gone, err
	}
	// A writer locks res first, so this order does not cause deadlocks. It also waits for the
	// statements of earlier releases, whose records are in unpacked.
	if _, err := tx.Exec(ctx, `LOCK TABLE res, ix_str IN ACCESS EXCLUSIVE MODE`); err != nil {
		return false, err
	}
	if err := tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM unpacked)`).Scan(&ready); err != nil || !ready {
		return false, err
	}
	_, err = tx.Exec(ctx, `DROP TRIGGER unpacked_insert ON res; DROP TRIGGER unpacked_update ON res; DROP TRIGGER unpacked_delete ON res;
		DROP FUNCTION unpack_texts; DROP TABLE ix_str, unpacked; UPDATE requirement SET oldest_server = GREATEST(oldest_server, 2)`)
	return err == nil, err
}
