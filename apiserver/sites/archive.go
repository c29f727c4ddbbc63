package sites

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

var (
	_ store.Archive   = (*database)(nil)
	_ store.ChangeLog = (*database)(nil)
)

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

// KeepsVersions implements store.Archive.
func (d *database) KeepsVersions() bool { return true }

// LogChanges implements store.ChangeLog.
func (d *database) LogChanges(ctx context.Context) error {
	_, err := with(ctx, d, func(site *postgres.Store) (none, error) { return none{}, site.LogChanges(ctx) })
	return err
}

// Mark implements store.ChangeLog.
func (d *database) Mark(ctx context.Context) (string, error) {
	return with(ctx, d, func(site *postgres.Store) (string, error) { return site.Mark(ctx) })
}

// ChangedSince implements store.ChangeLog.
func (d *database) ChangedSince(ctx context.Context, mark string) ([]store.Key, error) {
	return with(ctx, d, func(site *postgres.Store) ([]store.Key, error) { return site.ChangedSince(ctx, mark) })
}

// DropChanges implements store.ChangeLog.
func (d *database) DropChanges(ctx context.Context) error {
	_, err := with(ctx, d, func(site *postgres.Store) (none, error) { return none{}, site.DropChanges(ctx) })
	return err
}

// Count implements store.ChangeLog.
func (d *database) Count(ctx context.Context) (store.Counts, error) {
	return with(ctx, d, func(site *postgres.Store) (store.Counts, error) { return site.Count(ctx) })
}

// none is the result of a call that returns only an error.
type none struct{}
