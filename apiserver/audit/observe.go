package audit

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Observe wraps a store: the records that the store returns and writes are added to the Recorder in
// the context of each call. Writes are refused while the Site's log fails, see Recorder.Ready.
// Observe returns nil for nil.
func Observe(records store.Restricted) store.Restricted {
	if records == nil {
		return nil
	}
	return observed{records}
}

// observed must be the outermost decorator of a store, so that it records what callers see.
type observed struct{ store.Restricted }

// Get implements store.Store.
func (o observed) Get(ctx context.Context, key store.Key) (store.Record, error) {
	record, err := o.Restricted.Get(ctx, key)
	if err == nil {
		From(ctx).AddRead(record.Key)
	}
	return record, err
}

// GetVersion implements store.Store.
func (o observed) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	record, err := o.Restricted.GetVersion(ctx, key, version)
	if err == nil {
		From(ctx).AddRead(record.Key)
	}
	return record, err
}

// History implements store.Store.
func (o observed) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	page, err := o.Restricted.History(ctx, query)
	From(ctx).addReadPage(page.Records, page.Included, false)
	return page, err
}

// Search implements store.Store.
func (o observed) Search(ctx context.Context, query store.Query) (store.Page, error) {
	page, err := o.Restricted.Search(ctx, query)
	From(ctx).addReadPage(page.Records, page.Included, true)
	return page, err
}

// Write implements store.Store. Errors: those of the store, ErrUnavailable.
func (o observed) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	recorder := From(ctx)
	if err := recorder.Ready(); err != nil {
		return nil, err
	}
	if len(ops) == 1 {
		ctx = recorder.withWriteEntry(ctx)
	}
	results, err := o.Restricted.Write(ctx, ops)
	// The keys of a failed write are recorded, too: it may have happened, and its error may reveal
	// whether a record exists.
	keys := make([]store.Key, len(ops))
	for i := range ops {
		keys[i] = ops[i].Key
		if err == nil && results[i].Record.Key.ID != "" {
			keys[i] = results[i].Record.Key
		}
	}
	recorder.AddWritten(keys...)
	return results, err
}
