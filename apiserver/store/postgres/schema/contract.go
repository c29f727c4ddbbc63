package schema

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Contract ends the upgrade of a database from an earlier release. It drops ix_str, the table of texts of
// releases before server level 2, and what keeps it in step with ix_text. And it renames ix_tok, in which
// releases before server level 3 search for all codes, to ix_code. From then on, only servers of level 3
// can use the database. It returns true if both tables are gone, also if they were gone before the call.
// It changes nothing and returns false in four cases. A site may have records that are not reindexed. A
// server of an earlier release is connected. The time for a rollback (requirement.texts_until) has not
// ended. Another process runs Contract. It waits for locks as a migration does. Before it drops ix_str,
// it creates the index res_created, without blocking writes, which takes some seconds for a million
// records. After an error, conn may be closed.
func Contract(ctx context.Context, conn *pgx.Conn) (done bool, err error) {
	state, err := findEarlier(ctx, conn)
	if err != nil || state.isOver() || !state.isReady {
		return state.isOver(), err
	}
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, contractLock).Scan(&locked); err != nil || !locked {
		return false, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		if _, unlocked := conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, contractLock); unlocked != nil {
			_ = conn.Close(ctx) // which also releases the lock
		}
	}()
	if state.hasTexts {
		if err := createIndexOfSignatures(ctx, conn); err != nil {
			return false, err
		}
	}
	err = whileLocked(ctx, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			done, err = contract(ctx, tx)
			return err
		})
	})
	return done, err
}

func contract(ctx context.Context, tx pgx.Tx) (done bool, err error) {
	if _, err := tx.Exec(ctx, lockTimeout); err != nil {
		return false, err
	}
	state, err := findEarlier(ctx, tx)
	if err != nil || state.isOver() || !state.isReady {
		return state.isOver(), err
	}
	// A writer locks res first, so this order does not cause deadlocks. The lock also waits for the
	// statements of earlier releases, which add their records to unpacked.
	lock := `LOCK TABLE res, ix_tok IN ACCESS EXCLUSIVE MODE`
	change := `ALTER TABLE ix_tok RENAME TO ix_code; ALTER INDEX ix_tok_pkey RENAME TO ix_code_pkey; UPDATE requirement SET oldest_server = GREATEST(oldest_server, 3)`
	if state.hasTexts {
		lock = `LOCK TABLE res, ix_tok, ix_str IN ACCESS EXCLUSIVE MODE`
		change += `; ALTER TABLE res DROP CONSTRAINT res_site_typ_rid_deleted_key; DROP TRIGGER unpacked_insert ON res; DROP TRIGGER unpacked_update ON res;
			DROP TRIGGER unpacked_delete ON res; DROP FUNCTION unpack_texts; DROP TABLE ix_str, unpacked`
	}
	if _, err := tx.Exec(ctx, lock); err != nil {
		return false, err
	}
	if state, err = findEarlier(ctx, tx); err != nil || !state.isReady {
		return false, err
	}
	_, err = tx.Exec(ctx, change)
	return err == nil, err
}

// rowQuerier is a connection or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// earlierState is what is left of earlier releases.
type earlierState struct {
	// hasTexts and hasCodes report whether there are the tables ix_str and ix_tok.
	hasTexts, hasCodes bool
	// isReady reports whether no server of an earlier release may use the database any more, and all
	// records are reindexed.
	isReady bool
}

func (s earlierState) isOver() bool { return !s.hasTexts && !s.hasCodes }

func findEarlier(ctx context.Context, db rowQuerier) (state earlierState, err error) {
	const find = `SELECT to_regclass('ix_str') IS NOT NULL, to_regclass('ix_tok') IS NOT NULL,
		(SELECT texts_until <= now() FROM requirement) AND NOT EXISTS (SELECT FROM sites WHERE layout < 2) AND NOT EXISTS (
		SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('paddock', 'paddock-2'))`
	err = db.QueryRow(ctx, find).Scan(&state.hasTexts, &state.hasCodes, &state.isReady)
	if err != nil || !state.hasTexts || !state.isReady {
		return state, err
	}
	// The rows of a site that an earlier release has erased remain in unpacked, because that release
	// does not know the table.
	const isPacked = `SELECT NOT EXISTS (SELECT FROM unpacked u JOIN sites s USING (site))`
	err = db.QueryRow(ctx, isPacked).Scan(&state.isReady)
	return state, err
}

// createIndexOfSignatures creates the index res_created unless it is there. The index is to replace the
// unique constraint on the same key, which contract drops. An index whose creation was interrupted
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
