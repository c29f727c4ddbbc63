package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestUpgradeDuringTraffic upgrades a database of an earlier release while clients write and search by
// two servers. Each client updates a record and finds it by its new text, once, and not by the
// old one. It also finds a record that the earlier release wrote.
func TestUpgradeDuringTraffic(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgraded(t, key)
	server, other := open(t, pool, key, postgres.Options{}), open(t, pool, key, postgres.Options{})
	named := func(id, name string) store.Op {
		return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: fmt.Appendf(nil, `{"Texts":{"name":[{"Folded":%q,"Original":%q}]},"Tokens":{"identifier":[{"System":"","Code":"1"}]}}`, name, name)}}
	}
	const clients, early = 4, 1500 // more than a batch of Reindex
	for i := range early {
		writeAll(t, server, named(fmt.Sprint("early-", i), fmt.Sprintf("early %d.", i)))
	}
	if _, err := pool.Exec(t.Context(), `UPDATE res SET packed = NULL, vals = ''`); err != nil { // as the earlier release stores them
		t.Fatal(err)
	}
	other.SetPlanLimits(1, 1, 1) // scans instead of lists
	count := func(ctx context.Context, s *postgres.Store, name string) (int, error) {
		where := store.All{store.TextIs{Param: "name", Text: name}, store.TokenIs{Param: "identifier", Code: new("1")}}
		page, err := s.Search(ctx, store.Query{Types: []string{patient}, Where: where, Sort: []store.Sort{{Field: store.SortCreated, Descending: true}}, Count: 10, Total: store.TotalNone})
		if err != nil {
			return 0, err
		}
		return len(page.Records), nil
	}
	var isUpgraded atomic.Bool
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			after := 0
			for n := 0; after < 20; n++ {
				if isUpgraded.Load() {
					after++
				}
				id := fmt.Sprint("client-", client)
				if _, err := server.Write(t.Context(), []store.Op{named(id, fmt.Sprintf("client %d, text %d.", client, n))}); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				for name, want := range map[string]int{
					fmt.Sprintf("client %d, text %d.", client, n): 1, fmt.Sprintf("client %d, text %d.", client, n-1): 0,
					fmt.Sprintf("client %d,", client): 1, fmt.Sprintf("early %d.", (n*97+client)%early): 1,
				} {
					for _, s := range []*postgres.Store{server, other} {
						if got, err := count(t.Context(), s, name); err != nil || got != want {
							t.Errorf("%d records are found by %q, %v, want %d", got, name, err, want)
							return
						}
					}
				}
			}
		})
	}
	server.SetRenewPause(0)
	if state, err := server.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != postgres.Waiting {
		t.Errorf("renewed: %v, %v, want the time for a rollback to begin", state, err)
	}
	_, ended := pool.Exec(t.Context(), `UPDATE requirement SET texts_until = now()`)
	state, err := server.Renew(t.Context(), 1, func(postgres.Reindexed) {})
	isUpgraded.Store(true)
	group.Wait()
	if err != nil || ended != nil || state != postgres.Current {
		t.Errorf("renewed: %v, %v, %v", state, err, ended)
	}
	const indexes = `SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'res' AND indexdef LIKE '%rid)%' AND indexdef LIKE '%UNIQUE%'`
	var names string
	if err := pool.QueryRow(t.Context(), indexes).Scan(&names); err != nil || names != "res_created" {
		t.Errorf("unique indexes in the order of creation: %q, %v, want res_created", names, err)
	}
}
