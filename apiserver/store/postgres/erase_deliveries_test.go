package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestPlansOfErasure limits how many pages the erasure of a record touches, however many events about
// other records the site has.
func TestPlansOfErasure(t *testing.T) {
	pool, seen := explaining(t)
	key := uuid.NewString()
	site := open(t, pool, key, postgres.Options{})
	const about = `INSERT INTO event (site, seq, at, subject, event, envelope) SELECT $1, n, n, hashint8(n), '{"id":"e","type":"a.b","subject":"Patient/other"}', '' FROM generate_series(1, 20000) n`
	if _, err := shared.Exec(t.Context(), about, site.Number()); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Exec(t.Context(), "VACUUM (ANALYZE) event"); err != nil {
		t.Fatal(err)
	}
	seen.reset()
	purge := store.Op{Kind: store.Purge, Key: store.Key{Type: patient, ID: "rex"}, Method: store.MethodDelete, Erase: true}
	if _, err := site.Write(t.Context(), []store.Op{purge}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pages", seen.buffers)
	if seen.buffers > 60 {
		t.Errorf("erasing a record touches %d pages, more than 60:\n%s", seen.buffers, seen.texts)
	}
}
