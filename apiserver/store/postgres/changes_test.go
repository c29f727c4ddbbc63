package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestChangesOfOpenTransactions shows that a log of changes has those of a transaction that began before
// a mark and ended after it, and that a mark is not used if the database has lost it.
func TestChangesOfOpenTransactions(t *testing.T) {
	key := uuid.NewString()
	s := open(t, shared, key, postgres.Options{})
	exercise(t, s)
	if err := s.LogChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	var site int32
	var changed store.Key
	if err := shared.QueryRow(t.Context(), `SELECT site, typ, id FROM res JOIN sites USING (site) WHERE key = $1 LIMIT 1`, key).Scan(&site, &changed.Type, &changed.ID); err != nil {
		t.Fatal(err)
	}
	var mark string
	err := pgx.BeginFunc(t.Context(), shared, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(t.Context(), `UPDATE res SET ixsum = ixsum WHERE site = $1 AND typ = $2 AND id = $3`, site, changed.Type, changed.ID); err != nil {
			return err
		}
		// A transaction that begins later and ends before the mark.
		if _, err = shared.Exec(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
			return err
		}
		mark, err = s.Mark(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := s.ChangedSince(t.Context(), mark); err != nil || !slices.Equal(keys, []store.Key{changed}) {
		t.Errorf("changes since a mark: got %v, %v; want %v", keys, err, changed)
	}
	next, err := s.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := s.ChangedSince(t.Context(), next); err != nil || len(keys) > 0 {
		t.Errorf("changes since a later mark: got %v, %v; want none", keys, err)
	}
	for what, lose := range map[string]string{
		"the row of the mark is gone": `DELETE FROM ` + schema.ChangesTable(site) + ` WHERE typ = ''`,
		"a trigger is gone":           `DROP TRIGGER ` + schema.ChangesTable(site) + `_old ON res`,
	} {
		if mark, err = s.Mark(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Exec(t.Context(), lose); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ChangedSince(t.Context(), mark); !errors.Is(err, store.ErrChangesLost) {
			t.Errorf("%s: got %v, want ErrChangesLost", what, err)
		}
		if err := s.DropChanges(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ChangedSince(t.Context(), mark); !errors.Is(err, store.ErrChangesLost) {
			t.Errorf("the log is gone: got %v, want ErrChangesLost", err)
		}
		if err := s.LogChanges(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := schema.Erase(t.Context(), conn, key); err != nil {
		t.Fatal(err)
	}
	if there, err := schema.HasChanges(t.Context(), conn, site); err != nil || there {
		t.Errorf("the log of a site that was erased: got %t, %v", there, err)
	}
}
