package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// siteTables hold rows of sites, in the order in which they are emptied: index rows of a
// record that is there are better missing than left behind. sites comes last and by itself.
var siteTables = []string{"ix_tok", "ix_ref", "ix_path", "ix_str", "ix_date", "ix_pos", "claim", "hist", "res"}

// eraseBatch bounds a statement: it is over in well under a second.
const eraseBatch = 5000

// Erase deletes all rows of the site with the key, in batches that are transactions of
// their own, until ctx ends. Erasing what is not there changes nothing.
func Erase(ctx context.Context, conn *pgx.Conn, key string) error {
	for _, table := range siteTables {
		// ctid saves a look-up: the rows are deleted as they are found.
		sql := `DELETE FROM ` + table + ` WHERE site = (SELECT site FROM sites WHERE key = $1) AND ctid = ANY(ARRAY(
			SELECT ctid FROM ` + table + ` WHERE site = (SELECT site FROM sites WHERE key = $1) LIMIT $2))`
		for {
			done, err := conn.Exec(ctx, sql, key, eraseBatch)
			if err != nil {
				return fmt.Errorf("erase %s: %w", table, err)
			}
			if done.RowsAffected() == 0 {
				break
			}
		}
	}
	if _, err := conn.Exec(ctx, `DELETE FROM sites WHERE key = $1`, key); err != nil {
		return fmt.Errorf("erase the site: %w", err)
	}
	return nil
}
