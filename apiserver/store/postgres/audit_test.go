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
	audittest.Run(t, func(t *testing.T) (audit.Storage, audit.Storage) {
		key := uuid.NewString()
		return open(t, shared, key, postgres.Options{}).Audit(), open(t, shared, key, postgres.Options{}).Audit()
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
