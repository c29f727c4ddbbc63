package sites

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

var _ store.Archive = (*database)(nil)

// Dump implements store.Archive.
func (d *database) Dump(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	return with(ctx, d, func(site *postgres.Store) (store.DumpPage, error) { return site.Dump(ctx, query) })
}

// Restore implements store.Archive.
func (d *database) Restore(ctx context.Context, records []store.Dumped) ([]store.Restored, error) {
	if d.paused.Load() {
		return nil, store.ErrMoving
	}
	return with(ctx, d, func(site *postgres.Store) ([]store.Restored, error) { return site.Restore(ctx, records) })
}
