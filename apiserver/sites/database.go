package sites

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// database is the store of a Site in Postgres. It opens the engine's store at the first call, so
// that an unavailable database does not delay other Sites.
type database struct {
	key        string
	connection dsn.Connection
	pool       *pgxpool.Pool
	// replicas is nil if the database has no read replicas, if this process delivers events, and for a
	// store of openLocked.
	replicas *postgres.Replicas
	// maintenance is shared by the stores of the pool. It is nil for a store of openLocked, which is the
	// only one of its pool.
	maintenance *postgres.Maintenance
	// queue delivers the Site's events. It is nil unless this process delivers.
	queue     *sharedQueue
	extractor store.Extractor
	// close ends the background work and the use of the pool. A store of open may finish calls in
	// progress. For a store of openLocked, close waits until calls in progress have ended.
	close func()

	opening singleflight.Group
	site    atomic.Pointer[postgres.Store]
	indexed atomic.Int32 // an indexState
	// paused makes Write and Restore fail with store.ErrMoving, while a move pauses the writes of the
	// Site.
	paused atomic.Bool
	// retention is nil until setRetention is called.
	retention atomic.Pointer[store.Retention]
	// reported is the last indexState that this process reported.
	reported indexState
}

var _ store.Store = (*database)(nil)

// opened returns the engine's store, and opens it if needed. Concurrent calls share one attempt.
func (d *database) opened(ctx context.Context) (*postgres.Store, error) {
	if site := d.site.Load(); site != nil {
		return site, nil
	}
	attempt := d.opening.DoChan("", func() (any, error) {
		site, err := postgres.Open(context.WithoutCancel(ctx), d.pool, d.key, postgres.Options{Extractor: d.extractor, Replicas: d.replicas, Maintenance: d.maintenance})
		if err == nil {
			if retention := d.retention.Load(); retention != nil {
				site.SetRetention(*retention)
			}
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

// with calls the engine's store and returns the result, or the error of opening the store.
func with[T any](ctx context.Context, d *database, call func(*postgres.Store) (T, error)) (T, error) {
	site, err := d.opened(ctx)
	if err != nil {
		var zero T
		return zero, err
	}
	return call(site)
}

// Get implements store.Store.
func (d *database) Get(ctx context.Context, key store.Key) (store.Record, error) {
	return with(ctx, d, func(site *postgres.Store) (store.Record, error) { return site.Get(ctx, key) })
}

// GetVersion implements store.Store.
func (d *database) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	return with(ctx, d, func(site *postgres.Store) (store.Record, error) { return site.GetVersion(ctx, key, version) })
}

// History implements store.Store.
func (d *database) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	return with(ctx, d, func(site *postgres.Store) (store.Page, error) { return site.History(ctx, query) })
}

// Search implements store.Store.
func (d *database) Search(ctx context.Context, query store.Query) (store.Page, error) {
	return with(ctx, d, func(site *postgres.Store) (store.Page, error) { return site.Search(ctx, query) })
}

// Watermark implements store.Store.
func (d *database) Watermark(ctx context.Context) (time.Time, error) {
	return with(ctx, d, func(site *postgres.Store) (time.Time, error) { return site.Watermark(ctx) })
}

// Write implements store.Store.
func (d *database) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if d.paused.Load() {
		return nil, store.ErrMoving
	}
	return with(ctx, d, func(site *postgres.Store) ([]store.Result, error) { return site.Write(ctx, ops) })
}

// Atomic implements store.Store.
func (d *database) Atomic() bool { return true }

// Stats implements store.Store. The result is zero until the engine's store is open.
func (d *database) Stats() store.Stats {
	if site := d.site.Load(); site != nil {
		return site.Stats()
	}
	return store.Stats{}
}
