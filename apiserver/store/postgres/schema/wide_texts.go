package schema

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// DropWideTexts drops ix_str, the table of texts of releases before server level 2, and what keeps
// it in step with ix_text. From then on, only servers of level 2 can use the database. It returns
// true if the table is gone, also if it was gone before the call. It drops nothing and returns
// false in four cases. A record may lack its rows in ix_text. A server of an earlier release is
// connected. The time for a rollback (requirement.texts_until) has not ended. Another process runs
// DropWideTexts. It waits for locks as a migration does. Before it drops anything, it creates the
// index res_created, without blocking writes, which takes some seconds for a million records. After
// an error, conn may be closed.
func DropWideTexts(ctx context.Context, conn *pgx.Conn) (done bool, err error) {
	gone, ready, err := findWideTexts(ctx, conn)
	if err != nil || gone || !ready {
		return gone, err
	}
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, wideTextsLock).Scan(&locked); err != nil || !locked {
		return false, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		if _, unlocked := conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, wideTextsLock); unlocked != nil {
			_ = conn.Close(ctx) // which also releases the lock
		}
	}()
	if err := createIndexOfSignatures(ctx, conn); err != nil {
		return false, err
	}
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
	gone, ready, err := findWideTexts(ctx, tx)
	if err != nil || gone || !ready {
		return gone, err
	}
	// A writer locks res first, so this order does not cause deadlocks. The lock also waits for the
	// statements of earlier releases, which add their records to unpacked.
	if _, err := tx.Exec(ctx, `LOCK TABLE res, ix_str IN ACCESS EXCLUSIVE MODE`); err != nil {
		return false, err
	}
	if _, ready, err = findWideTexts(ctx, tx); err != nil || !ready {
		return false, err
	}
	_, err = tx.Exec(ctx, `ALTER TABLE res DROP CONSTRAINT res_site_typ_rid_deleted_key; DROP TRIGGER unpacked_insert ON res; DROP TRIGGER unpacked_update ON res; DROP TRIGGER unpacked_delete ON res;
		DROP FUNCTION unpack_texts; DROP TABLE ix_str, unpacked; UPDATE requirement SET oldest_server = GREATEST(oldest_server, 2)`)
	return err == nil, err
}

// rowQuerier is a connection or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// findWideTexts reports whether ix_str is gone, and whether it may be dropped.
func findWideTexts(ctx context.Context, db rowQuerier) (gone, ready bool, err error) {
	const find = `SELECT to_regclass('ix_str') IS NULL, (SELECT texts_until <= now() FROM requirement) AND NOT EXISTS (SELECT FROM sites WHERE layout < 1) AND NOT EXISTS (
		SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'paddock')`
	if err := db.QueryRow(ctx, find).Scan(&gone, &ready); err != nil || gone || !ready {
		return gone, false, err
	}
	// The rows of a site that an earlier release has erased remain in unpacked, because that release
	// does not know the table.
	const isPacked = `SELECT NOT EXISTS (SELECT FROM unpacked u JOIN sites s USING (site))`
	err = db.QueryRow(ctx, isPacked).Scan(&ready)
	return gone, ready, err
}

// createIndexOfSignatures creates the index res_created unless it is there. The index is to replace the
// unique constraint on the same key, which dropWideTexts drops. An index whose creation was interrupted
// is not valid. It is dropped and created again. After an error of these statements, conn is closed.
func createIndexOfSignatures(ctx context.Context, conn *pgx.Conn) error {
	const find = `SELECT to_regclass('res_created') IS NOT NULL, COALESCE((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('res_created')), FALSE)`
	var exists, isValid bool
	if err := conn.QueryRow(ctx, find).Scan(&exists, &isValid); err != nil || isValid {
		return err
	}
	statements := []string{`CREATE UNIQUE INDEX CONCURRENTLY res_created ON res (site, typ, rid) INCLUDE (deleted, sig, sig2, sig3, present)`}
	if exists {
		statements = append([]string{`DROP INDEX CONCURRENTLY res_created`}, statements...)
	}
	statements = append(append([]string{`SET statement_timeout = 0`}, statements...), `RESET statement_timeout`)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // because its timeout may be off
			return err
		}
	}
	return nil
}
