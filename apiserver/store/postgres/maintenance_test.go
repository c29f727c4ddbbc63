package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestMaintenanceOfManySites reindexes more sites than a pool has connections, and enforces their
// retention.
func TestMaintenanceOfManySites(t *testing.T) {
	config, err := postgres.Config(unhurried(server.URL(database)))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	maintenance := postgres.NewMaintenance(pool)
	var sites []*postgres.Store
	for range 2 * config.MaxConns {
		s := open(t, pool, uuid.NewString(), postgres.Options{Maintenance: maintenance})
		if _, err := s.Write(t.Context(), []store.Op{counterOp("1", 1)}); err != nil {
			t.Fatal(err)
		}
		s.SetRenewPause(time.Millisecond)
		sites = append(sites, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const version = 7
	for name, maintain := range map[string]func(*postgres.Store) error{
		"reindex": func(s *postgres.Store) error {
			_, err := s.Renew(ctx, version, func(postgres.Reindexed) {})
			return err
		},
		"retention": func(s *postgres.Store) error {
			_, err := s.Retain(ctx, store.Cutoffs{Tombstones: time.Now(), Versions: time.Now()})
			return err
		},
	} {
		var group sync.WaitGroup
		for _, s := range sites {
			group.Go(func() {
				if err := maintain(s); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		group.Wait()
	}
}
