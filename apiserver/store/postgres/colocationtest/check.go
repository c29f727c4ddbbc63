package colocationtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Exception is a statement that is not about one site, or whose plan does not show it.
type Exception struct {
	// Contains is a part of the statement that no other statement has.
	Contains string
	// Reason says why the statement is an exception.
	Reason string
	// EachSite restricts the exception: the statement may be about several sites, but each scan must have
	// a condition by which rows of the same site are joined.
	EachSite bool
}

// utilities are the beginnings of statements without rows of a site: control of transactions and
// sessions, and the maintenance of tables. Postgres has no plans for them.
var utilities = []string{
	"begin", "commit", "rollback", "savepoint", "release", "SET ", "ANALYZE", "LISTEN", "UNLISTEN", "NOTIFY",
	// Partitions of the audit log, which have the entries of all sites on a day.
	"CREATE TABLE audit_", "ALTER TABLE audit ATTACH PARTITION audit_", "DROP TABLE IF EXISTS audit_",
	// The fence of a site, whose triggers name the site (schema.Fence).
	"CREATE OR REPLACE FUNCTION paddock_fenced()", "CREATE TRIGGER paddock_fence_", "DROP TRIGGER IF EXISTS paddock_fence_",
	// The log of changes of a site, which is a table of the site and triggers (schema.LogChanges).
	"CREATE TABLE paddock_changes_", "CREATE FUNCTION paddock_changes_", "CREATE TRIGGER paddock_changes_",
	"DROP TRIGGER IF EXISTS paddock_changes_", "DROP FUNCTION IF EXISTS paddock_changes_", "DROP TABLE IF EXISTS paddock_changes_",
}

// Check tests that each statement of a Recorder names one site, except the statements in
// exceptions. Each scan of a table of sites in the plan of a statement must have a condition on
// this site. conn is a connection to a database with the engine's tables. It must have the settings
// of the engine's sessions. Check turns enable_partition_pruning off in conn.
func Check(t *testing.T, conn *pgx.Conn, recorder *Recorder, exceptions []Exception) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // Check runs in cleanups, after the end of the context.
	tables, err := siteTables(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range recorder.Statements() {
		i := slices.IndexFunc(exceptions, func(e Exception) bool { return strings.Contains(sql, e.Contains) })
		if isUtility(sql) || i >= 0 && !exceptions[i].EachSite {
			continue
		}
		found, err := findings(ctx, conn, tables, sql)
		if err != nil {
			t.Errorf("no plan of the statement %s: %v", sql, err)
		}
		for _, finding := range found {
			if i < 0 || !finding.EachSite {
				t.Errorf("%s, in the statement %s", finding.Text, sql)
			}
		}
	}
	for table, columns := range recorder.Copied() {
		if tables[table] && (len(columns) == 0 || columns[0] != "site") {
			t.Errorf("COPY fills the columns %v of %s, want site as the first one", columns, table)
		}
	}
}

func isUtility(sql string) bool {
	return slices.ContainsFunc(utilities, func(beginning string) bool { return strings.HasPrefix(sql, beginning) })
}

// siteTables returns the tables with the column site, partitions included, except the table sites, which
// has a row for each site.
func siteTables(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	rows, err := conn.Query(ctx, `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'site' WHERE c.relkind IN ('r', 'p') AND c.relname <> 'sites'`)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	tables := map[string]bool{}
	for _, name := range names {
		tables[name] = true
	}
	return tables, err
}

// Finding is what is wrong with a scan or an insertion of a statement.
type Finding struct {
	Text string
	// EachSite reports whether a table is scanned for each of several sites, with a condition on the site.
	EachSite bool
}

// Findings returns what is wrong with a statement.
func Findings(ctx context.Context, conn *pgx.Conn, sql string) ([]Finding, error) {
	tables, err := siteTables(ctx, conn)
	if err != nil {
		return nil, err
	}
	return findings(ctx, conn, tables, sql)
}

func findings(ctx context.Context, conn *pgx.Conn, tables map[string]bool, sql string) ([]Finding, error) {
	plan, err := explain(ctx, conn, sql)
	if err != nil {
		return nil, err
	}
	w := walk{tables: tables, sites: map[string]bool{}, ofOneSite: map[string]bool{}}
	w.visit(plan, "")
	if len(w.sites) > 1 {
		w.add("%d expressions for the site", len(w.sites))
	}
	return w.found, nil
}
