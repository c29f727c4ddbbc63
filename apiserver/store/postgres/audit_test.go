package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/audit/audittest"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

func TestAudit(t *testing.T) {
	pool := watched(t)
	audittest.Run(t, func(t *testing.T) (audit.Storage, audit.Storage) {
		key := uuid.NewString()
		return open(t, pool, key, postgres.Options{}).Audit(), open(t, pool, key, postgres.Options{}).Audit()
	})
}

// TestAuditPartitions shows that the partition of a day is dropped when no site retains its
// entries.
func TestAuditPartitions(t *testing.T) {
	log := open(t, shared, uuid.NewString(), postgres.Options{}).Audit()
	old := time.Now().UTC().Add(-400 * 24 * time.Hour).Truncate(time.Microsecond)
	name := "audit_" + old.Format("20060102")
	if err := log.Append(t.Context(), []*audit.Entry{{Time: old, ID: 1, Method: "GET", Status: 200}}); err != nil {
		t.Fatal(err)
	}
	partitions := func() int { return len(names(t, `SELECT relname::text FROM pg_class WHERE relname = '`+name+`'`)) }
	if err := log.Trim(t.Context(), 500*24*time.Hour); err != nil || partitions() != 1 {
		t.Fatalf("%d partitions, error %v", partitions(), err)
	}
	if err := log.Trim(t.Context(), 90*24*time.Hour); err != nil || partitions() != 0 {
		t.Fatalf("%d partitions, error %v", partitions(), err)
	}
	tomorrow := "audit_" + time.Now().UTC().Add(24*time.Hour).Format("20060102")
	if got := names(t, `SELECT relname::text FROM pg_class WHERE relname = '`+tomorrow+`'`); len(got) != 1 {
		t.Errorf("no partition for tomorrow")
	}
}

// TestAuditOfEarlierReleases shows that the entries of releases before migration 7 are found, which
// have a row for each record.
func TestAuditOfEarlierReleases(t *testing.T) {
	key := uuid.NewString()
	log := open(t, shared, key, postgres.Options{}).Audit()
	stored := func(ago time.Duration) *audit.Entry {
		return audittest.Entry(ago, func(e *audit.Entry) { e.Records = audit.RecordsOf("Patient/a", "Patient/b") })
	}
	newest, old := stored(time.Minute), stored(2*time.Hour)
	if err := log.Append(t.Context(), []*audit.Entry{newest, stored(2 * time.Hour)}); err != nil { // also creates the partitions
		t.Fatal(err)
	}
	for n, entity := range []string{"Patient/a", "Patient/b"} {
		_, err := shared.Exec(t.Context(), `INSERT INTO audit (site, at, id, n, entity, caller, action, outcome, interaction, entry)
			SELECT site, $2, $3, $4, $5, 'alice', 'R', 0, 'read', CASE WHEN $4 = 0 THEN $6::bytea END FROM sites WHERE key = $1`,
			key, old.Time.UnixMicro(), old.ID, n, entity, old.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		query audit.Query
		want  int
	}{
		"a record":         {audit.Query{Entity: "Patient/b", Count: 10}, 3},
		"the newest":       {audit.Query{Entity: "Patient/b", Count: 1}, 1},
		"of a caller":      {audit.Query{Entity: "Patient/a", Caller: "alice", Count: 10}, 3},
		"another record":   {audit.Query{Entity: "Patient/c", Count: 10}, 0},
		"after the newest": {audit.Query{Entity: "Patient/a", After: audit.Position{Time: newest.Time.UnixMicro(), ID: newest.ID}, Count: 10}, 2},
		"all":              {audit.Query{Count: 10}, 3},
	} {
		found, err := log.Search(t.Context(), test.query)
		if err != nil || len(found) != test.want {
			t.Errorf("%s: found %d, error %v; want %d", name, len(found), err, test.want)
		}
	}
}
