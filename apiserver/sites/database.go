package sites

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// database is the store of a site in Postgres. Its site is looked up in the database when
// it is first asked for something, so that a database that is away holds nobody up.
type database struct {
	key        string
	connection dsn.Connection
	pool       *pgxpool.Pool
	extraction Extraction
	// close ends the use of the pool. Calls that are on their way may finish.
	close func()

	opening singleflight.Group
	site    atomic.Pointer[postgres.Site]
	indexed atomic.Int32 // an indexState
	// reported is the indexState that this process reported last.
	reported indexState
}

var _ store.Store = (*database)(nil)

// opened is the engine's store. All who ask for it at once share one attempt.
func (d *database) opened(ctx context.Context) (*postgres.Site, error) {
	if site := d.site.Load(); site != nil {
		return site, nil
	}
	attempt := d.opening.DoChan("", func() (any, error) {
		site, err := postgres.Open(context.WithoutCancel(ctx), d.pool, d.key, postgres.Options{
			Extract: d.extraction.Extract, References: d.extraction.References, Facet: d.extraction.Facet, Fold: d.extraction.Fold,
		})
		if err == nil {
			d.site.Store(site)
		}
		return nil, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case done := <-attempt:
		return d.site.Load(), done.Err
	}
}

// Get implements store.Store.
func (d *database) Get(ctx context.Context, key store.Key) (store.Record, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return store.Record{}, err
	}
	return site.Get(ctx, key)
}

// GetVersion implements store.Store.
func (d *database) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return store.Record{}, err
	}
	return site.GetVersion(ctx, key, version)
}

// History implements store.Store.
func (d *database) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return store.Page{}, err
	}
	return site.History(ctx, query)
}

// Search implements store.Store.
func (d *database) Search(ctx context.Context, query store.Query) (store.Page, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return store.Page{}, err
	}
	return site.Search(ctx, query)
}

// Write implements store.Store.
func (d *database) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return nil, err
	}
	return site.Write(ctx, ops)
}

// Atomic implements store.Store.
func (d *database) Atomic() bool { return true }

// Stats implements store.Store. A site that nobody asked for yet has nothing to tell.
func (d *database) Stats() store.Stats {
	if site := d.site.Load(); site != nil {
		return site.Stats()
	}
	return store.Stats{}
}
