package schema

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// siteTables are the tables that have rows of sites, in the order in which Erase deletes these
// rows. Index rows must go before their records, because an index row without a record is worse
// than a record without index rows. The audit log is deleted after the records that it is about.
// Erase deletes the row of the table sites last.
var siteTables = []string{"ix_tok", "ix_code", "ix_ref", "ix_path", "ix_str", "ix_text", "unpacked", "ix_date", "ix_pos", "claim", "hist", "res", "audit", "outbox", "delivery", "event", "webhook", "relayed"}

// eraseBatch is the maximum number of rows that one statement deletes, so that the statement ends
// within a second.
const eraseBatch = 5000

// Erase deletes all rows of the site with a site key. Each batch is a transaction of its own, so after
// an error a part of the rows is deleted, and Erase can be called again. If there is no such site, or
// if the database has no tables, Erase does nothing. Errors: ErrFenced, before any row is deleted.
func Erase(ctx context.Context, conn *pgx.Conn, key string) error {
	site, known, err := numberOf(ctx, conn, key)
	if err != nil || !known { // its row in sites is deleted last
		return err
	}
	if fenced, err := hasFence(ctx, conn, site); err != nil || fenced {
		return cmp.Or(err, ErrFenced)
	}
	for _, table := range siteTables {
		// Newer tables are missing if the Site is deleted before its database was migrated to this
		// release.
		var there bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&there); err != nil {
			return fmt.Errorf("erase site %s: delete from table %s: %w", key, table, err)
		}
		if !there {
			continue
		}
		// With ctid, the DELETE need not look up the rows again that the subquery has found.
		sql := `DELETE FROM ` + table + ` WHERE site = (SELECT site FROM sites WHERE key = $1) AND ctid = ANY(ARRAY(
			SELECT ctid FROM ` + table + ` WHERE site = (SELECT site FROM sites WHERE key = $1) LIMIT $2))`
		for {
			done, err := conn.Exec(ctx, sql, key, eraseBatch)
			if err != nil {
				return fmt.Errorf("erase site %s: delete from table %s: %w", key, table, err)
			}
			if done.RowsAffected() == 0 {
				break
			}
		}
	}
	if err := eraseJobs(ctx, conn, key); err != nil {
		return err
	}
	if err := DropChangesOf(ctx, conn, key); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `DELETE FROM sites WHERE key = $1`, key); err != nil {
		return fmt.Errorf("erase site %s: %w", key, err)
	}
	return nil
}

// eraseJobs deletes the River jobs of a site, which it finds by the names of their queues. It does
// not delete running jobs and probes. These end without an attempt, because their deliveries are
// deleted.
func eraseJobs(ctx context.Context, conn *pgx.Conn, key string) error {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('river_job') IS NOT NULL`).Scan(&there); err != nil || !there {
		return err
	}
	const sql = `DELETE FROM river_job WHERE id = ANY(ARRAY(
		SELECT j.id FROM sites s CROSS JOIN LATERAL (
			SELECT id FROM river_job WHERE state = ANY(ENUM_RANGE(NULL::river_job_state)) AND state <> 'running'
			AND starts_with(queue, 's' || s.site || '-') LIMIT $2) j
		WHERE s.key = $1))`
	for {
		done, err := conn.Exec(ctx, sql, key, eraseBatch)
		if err != nil {
			return fmt.Errorf("erase site %s: delete its River jobs: %w", key, err)
		}
		if done.RowsAffected() == 0 {
			return nil
		}
	}
}
