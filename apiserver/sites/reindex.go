package sites

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// reindexDelay is the pause before another attempt to reindex a Site, after a failure or while
// another API server reindexes it.
const reindexDelay = 15 * time.Second

// dropDelay is the pause before another attempt to drop the tables of earlier releases
// (schema.Contract), when the records are indexed but the tables cannot be dropped yet.
const dropDelay = 10 * time.Minute

// indexState is what this process knows about a Site's index.
type indexState int32

const (
	indexUnknown indexState = iota
	indexing
	indexed
)

// keepIndexed reindexes the Site's records if an earlier version of the extraction indexed them. It
// calls looked with the number of records checked since the previous call. It returns once the index
// is complete and the tables of earlier releases are dropped, or when ctx ends. name is the
// namespace and name of the Site, for the log.
func (d *database) keepIndexed(ctx context.Context, name string, looked func(records int64)) {
	for {
		done, err := d.renew(ctx, looked)
		if done || ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.WarnContext(ctx, "cannot reindex the records of a site; the server will retry", "site", name, "siteKey", d.key, "error", err)
		}
		delay := reindexDelay
		if err == nil && indexState(d.indexed.Load()) == indexed {
			delay = dropDelay
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (d *database) renew(ctx context.Context, looked func(records int64)) (done bool, err error) {
	site, err := d.opened(ctx)
	if err != nil {
		return false, err
	}
	var before int64
	state, err := site.Renew(ctx, d.extractor.Version(), func(progress postgres.Reindexed) {
		d.indexed.Store(int32(indexing))
		if progress.Read > before {
			looked(progress.Read - before)
		}
		before = progress.Read
	})
	if err != nil || state == postgres.Elsewhere {
		return false, err
	}
	d.indexed.Store(int32(indexed))
	return state == postgres.Current, nil
}

// Reindexed returns the number of records of all Sites that this process has checked for outdated
// index rows.
func (s *Sites) Reindexed() int64 { return s.databases.reindexed.Load() }

// reportIndex calls set with the wanted condition if the state of the index has changed in this
// process, if last is nil, or if last has the same status, so that set can update its generation. last
// is the Site's condition, or nil if it has none. A condition with another status is kept, because a
// process of another release may have set it. While the state is unknown, reportIndex does nothing.
func (d *database) reportIndex(last *metav1.Condition, set func(*metav1.Condition) error) error {
	state := indexState(d.indexed.Load())
	if state == indexUnknown {
		return nil
	}
	wanted := indexReady(state, d.extractor.Version())
	if state == d.reported && last != nil && last.Status != wanted.Status {
		return nil
	}
	if err := set(wanted); err != nil {
		return err
	}
	d.reported = state
	return nil
}

func indexReady(state indexState, version int64) *metav1.Condition {
	if state == indexing {
		return &metav1.Condition{
			Type: sitesv1.ConditionIndexReady, Status: metav1.ConditionFalse, Reason: sitesv1.ReasonIndexing,
			Message: fmt.Sprintf("Index version %d is being built. Until the index is complete, searches by search parameters that are new in this index version may miss records. No action is needed.", version),
		}
	}
	return &metav1.Condition{
		Type: sitesv1.ConditionIndexReady, Status: metav1.ConditionTrue, Reason: sitesv1.ReasonIndexed,
		Message: fmt.Sprintf("All records are indexed by index version %d.", version),
	}
}
