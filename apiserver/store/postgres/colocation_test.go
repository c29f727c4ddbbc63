package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/colocationtest"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// tablesOfNoSite are the tables without rows of a site, with the reason. A database that is divided by
// site has a copy of them on each node, or has them on one node.
var tablesOfNoSite = map[string]string{
	"sites":              "It has a row for each site, by which the key of a site is mapped to its number.",
	"requirement":        "It has one row, about the database.",
	schema.VersionTable:  "It is the table of tern, and has one row, about the database.",
	"river_client":       "It is a table of River, which has the clients of the queue.",
	"river_client_queue": "It is a table of River, which has the clients of the queue.",
	"river_job":          "It is a table of River, which claims jobs of all sites. Lost jobs are created again from the table delivery.",
	"river_leader":       "It is a table of River, which has the leader of the queue.",
	"river_migration":    "It is a table of River, and has the version of River's tables.",
	"river_notification": "It is a table of River, which has notifications for its clients.",
	"river_queue":        "It is a table of River, which has the names of queues.",
}

// indexesOfNoSite are the indexes that do not begin with the site, with the reason. None of them is
// unique, so each node of a divided database can have its part of them.
var indexesOfNoSite = map[string]string{
	"res_rid":       "A hash index has one column. Statements that use it have a condition on the site, too.",
	"audit_records": "A GIN index of hashes. The hash key of each site is random, so that sites share no entries.",
}

// catalogFindings returns the tables, indexes and foreign keys of a database by which it cannot be divided
// by site.
func catalogFindings(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	query := func(sql string) []string {
		rows, err := pool.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	var found []string
	// Partitions have the columns and indexes of their table.
	for _, table := range query(`SELECT c.relname::text FROM pg_class c
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'site' AND a.attnum = 1 AND a.attnotnull AND a.atttypid = 'int4'::regtype
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname IS NULL ORDER BY 1`) {
		if tablesOfNoSite[table] == "" {
			found = append(found, "table "+table)
		}
	}
	// A column number of 0 is that of an expression.
	for _, index := range query(`SELECT CASE WHEN i.indisunique THEN 'unique ' ELSE '' END || i.indexrelid::regclass::text || ' ' || c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] AND a.attname = 'site'
		WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition AND a.attname IS NULL ORDER BY 1`) {
		name, table, _ := strings.Cut(index, " ")
		if indexesOfNoSite[name] == "" && tablesOfNoSite[table[strings.LastIndex(table, " ")+1:]] == "" {
			found = append(found, "index "+index)
		}
	}
	for _, key := range query(`SELECT k.conname || ' ' || c.relname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
		WHERE k.contype = 'f' AND c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'river%' AND NOT EXISTS (
			SELECT FROM unnest(k.conkey, k.confkey) u(here, there)
			JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.here AND a.attname = 'site'
			JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.there AND b.attname = 'site') ORDER BY 1`) {
		found = append(found, "foreign key "+key)
	}
	for _, extension := range query(`SELECT extname::text FROM pg_extension WHERE extname <> 'plpgsql'`) {
		found = append(found, "extension "+extension)
	}
	return found
}

// TestTablesLeadWithSite shows that the tables can be divided by site: every table begins with the column
// site, and so does every key and index. No extension is needed.
func TestTablesLeadWithSite(t *testing.T) {
	if found := catalogFindings(t, shared); len(found) > 0 {
		t.Errorf("not led by the site: %v", found)
	}
}

// TestTablesThatDoNotLeadWithSite shows that TestTablesLeadWithSite finds the errors that a migration may
// have.
func TestTablesThatDoNotLeadWithSite(t *testing.T) {
	const name = "not_colocated"
	pool := connectNew(t, name)
	if _, err := pool.Exec(t.Context(), `CREATE INDEX by_time ON res (upd);
		CREATE INDEX by_expression ON res ((site + 0), upd);
		CREATE UNIQUE INDEX by_number ON event (seq);
		CREATE TABLE note (id int8 PRIMARY KEY, site int NOT NULL);
		CREATE TABLE remark (site int NOT NULL, seq int8 REFERENCES event (seq))`); err != nil {
		t.Fatal(err)
	}
	want := []string{"table note", "index by_expression res", "index by_time res", "index unique by_number event", "index unique note_pkey note", "foreign key remark_seq_fkey remark"}
	if diff := cmp.Diff(want, catalogFindings(t, pool)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// statementsOfSeveralSites are the statements of the engine that read or change rows of several sites.
var statementsOfSeveralSites = []colocationtest.Exception{
	{Contains: "FROM audit WHERE records @> ARRAY[", Reason: "The condition on the site is outside of OFFSET 0, so that Postgres uses the index of records, whose hashes are those of one site."},
	{Contains: "paddock_changes_", Reason: "The table has the changes of one site and is gone when the test has ended."},
	{Contains: "site = (SELECT site FROM sites WHERE key = $1) AND ctid", Reason: "It has the site twice, by the same subquery."},
}

// watched returns a pool of the shared database. When the test has ended, all statements that the engine
// has sent through the pool are checked.
func watched(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config, err := postgres.Config(unhurried(server.URL(database)))
	if err != nil {
		t.Fatal(err)
	}
	recorder := colocationtest.NewRecorder()
	config.ConnConfig.Tracer = recorder
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		checkStatements(t, recorder)
	})
	return pool
}

// checkStatements checks the statements of a recorder, and that there are some.
func checkStatements(t *testing.T, recorder *colocationtest.Recorder) {
	t.Helper()
	conn := connectAsEngine(t)
	if n := len(recorder.Statements()); n < 5 {
		t.Errorf("only %d statements were seen", n)
	}
	colocationtest.Check(t, conn, recorder, statementsOfSeveralSites)
}

// connectAsEngine returns a connection with the settings of the engine's sessions.
func connectAsEngine(t *testing.T) *pgx.Conn {
	t.Helper()
	config, err := postgres.Config(server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

// TestStatementsStayWithinSite makes every call, and checks the statements that are sent. TestStore and
// its variants check those of the suite.
func TestStatementsStayWithinSite(t *testing.T) {
	pool := watched(t)
	exercise(t, open(t, pool, uuid.NewString(), postgres.Options{}))
	exercise(t, open(t, pool, uuid.NewString(), postgres.Options{}))
}

// TestErasureStaysWithinSite checks the statements that erase and fence a site.
func TestErasureStaysWithinSite(t *testing.T) {
	key := uuid.NewString()
	exercise(t, open(t, shared, key, postgres.Options{}))
	config, err := pgx.ParseConfig(server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	recorder := colocationtest.NewRecorder()
	config.Tracer = recorder
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, call := range []func(context.Context, *pgx.Conn, string) error{schema.Fence, schema.Unfence, schema.Erase} {
		if err := call(t.Context(), conn, key); err != nil {
			t.Fatal(err)
		}
	}
	checkStatements(t, recorder)
}

// TestStatementsAcrossSites shows which errors of a statement the tests above find.
func TestStatementsAcrossSites(t *testing.T) {
	conn := connectAsEngine(t)
	tests := map[string]struct {
		sql  string
		want []string
	}{
		"one site":                       {`SELECT r.id FROM res r JOIN ix_ref x ON x.site = $1 AND x.rid = r.rid WHERE r.site = $1 AND r.typ = 'Patient'`, nil},
		"the site of a joined row":       {`SELECT e.seq FROM (SELECT * FROM delivery x WHERE x.site = $1 ORDER BY x.id LIMIT 5) d JOIN event e ON e.site = d.site AND e.seq = d.seq`, nil},
		"no site":                        {`SELECT rid FROM ix_code WHERE key = $1`, []string{"ix_code ix_code is read without a condition on site"}},
		"a join by another column":       {`SELECT r.id FROM ix_ref x JOIN res r ON r.rid = x.rid WHERE x.site = $1 AND x.tgt = $2`, []string{"res r is read without a condition on site"}},
		"two sites":                      {`SELECT r.id FROM ix_ref x JOIN res r ON r.site = $2 AND r.rid = x.rid WHERE x.site = $1 AND x.tgt = $3`, []string{"2 expressions for the site"}},
		"each of several sites":          {`SELECT d.id FROM unnest($1::int4[]) s(site) JOIN delivery d ON d.site = s.site`, []string{"delivery is read for each site of s.site"}},
		"another site than it is":        {`SELECT FROM outbox WHERE site <> $1`, []string{"outbox outbox is read without a condition on site"}},
		"a change without a site":        {`UPDATE res SET ver = 1 WHERE typ = $1`, []string{"res res is read without a condition on site"}},
		"a deletion without a site":      {`DELETE FROM claim WHERE line = $1`, []string{"claim claim is read without a condition on site"}},
		"rows of a site that is derived": {`INSERT INTO relayed (site, webhook, deliveries) SELECT site + 1, webhook, 0 FROM webhook WHERE site = $1`, []string{"rows with site (webhook.site + 1) are inserted into relayed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := colocationtest.Findings(t.Context(), conn, test.sql)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, finding := range found {
				texts = append(texts, finding.Text)
			}
			if diff := cmp.Diff(test.want, texts); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
