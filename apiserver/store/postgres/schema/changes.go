package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// changeTriggers is the number of triggers that LogChanges creates for a site.
const changeTriggers = 2

// ChangesTable returns the name of the table to which LogChanges logs the changes of a site. Its
// columns are site, xid (the id of the transaction), typ and id (of the record, as in res). A mark
// (postgres.Store.Mark) is a row with an empty typ, whose id is the name of the mark.
func ChangesTable(site int32) string { return fmt.Sprintf("paddock_changes_%d", site) }

// LogChanges makes Postgres log the key of each record of a site that is changed, created or removed, in
// any process, until DropChanges is called. It waits for the transactions that are changing rows, so
// that no later change is missing, and fails if they take too long (patience). The log consists of a
// table and of triggers, so that sites without a log have no cost. LogChanges does nothing if there
// is a log.
func LogChanges(ctx context.Context, conn *pgx.Conn, site int32) error {
	complete, err := HasChanges(ctx, conn, site)
	if err != nil || complete {
		return err
	}
	table := ChangesTable(site)
	statements := append(dropChanges(site),
		fmt.Sprintf(`CREATE TABLE %s (site int NOT NULL, xid xid8 NOT NULL, typ text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, PRIMARY KEY (site, xid, typ, id))`, table),
		fmt.Sprintf(`CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF TG_OP = 'DELETE' THEN
				INSERT INTO %[1]s VALUES (OLD.site, pg_current_xact_id(), OLD.typ, OLD.id) ON CONFLICT DO NOTHING;
			ELSE
				INSERT INTO %[1]s VALUES (NEW.site, pg_current_xact_id(), NEW.typ, NEW.id) ON CONFLICT DO NOTHING;
			END IF;
			RETURN NULL; END $$`, table),
		fmt.Sprintf(`CREATE TRIGGER %[1]s_new AFTER INSERT OR UPDATE ON res FOR EACH ROW WHEN (NEW.site = %[2]d) EXECUTE FUNCTION %[1]s()`, table, site),
		fmt.Sprintf(`CREATE TRIGGER %[1]s_old AFTER DELETE ON res FOR EACH ROW WHEN (OLD.site = %[2]d) EXECUTE FUNCTION %[1]s()`, table, site))
	if err := runLocked(ctx, conn, statements); err != nil {
		return fmt.Errorf("create the table and the triggers of the log of site %d: %w", site, err)
	}
	return nil
}

// HasChanges reports whether there is a log of the changes of a site.
func HasChanges(ctx context.Context, conn *pgx.Conn, site int32) (bool, error) {
	var triggers int
	const find = `SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('res') AND tgname = ANY($1) AND to_regclass($2) IS NOT NULL`
	table := ChangesTable(site)
	if err := conn.QueryRow(ctx, find, []string{table + "_new", table + "_old"}, table).Scan(&triggers); err != nil {
		return false, fmt.Errorf("find the log of changes of site %d: %w", site, err)
	}
	return triggers == changeTriggers, nil
}

// DropChanges ends the log of the changes of a site and deletes it. It does nothing if there is none.
func DropChanges(ctx context.Context, conn *pgx.Conn, site int32) error {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, ChangesTable(site)).Scan(&there); err != nil || !there {
		return err
	}
	if err := runLocked(ctx, conn, dropChanges(site)); err != nil {
		return fmt.Errorf("drop the table and the triggers of the log of changes of site %d: %w", site, err)
	}
	return nil
}

// DropChangesOf is DropChanges for the site with a site key.
func DropChangesOf(ctx context.Context, conn *pgx.Conn, key string) error {
	site, there, err := numberOf(ctx, conn, key)
	if err != nil || !there {
		return err
	}
	return DropChanges(ctx, conn, site)
}

// dropChanges returns the statements that remove triggers, function and table.
func dropChanges(site int32) []string {
	table := ChangesTable(site)
	return []string{
		fmt.Sprintf(`DROP TRIGGER IF EXISTS %s_new ON res`, table),
		fmt.Sprintf(`DROP TRIGGER IF EXISTS %s_old ON res`, table),
		fmt.Sprintf(`DROP FUNCTION IF EXISTS %s()`, table),
		fmt.Sprintf(`DROP TABLE IF EXISTS %s`, table),
	}
}
