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

// reindexDelay is the pause before a site's index is looked at again, after a failure or
// while another API server brings it up to date.
const reindexDelay = 15 * time.Second

// indexState is what this process knows of a site's index.
type indexState int32

const (
	indexUnknown indexState = iota
	indexing
	indexed
)

// keepIndexed brings the site's index to this release's extraction, and returns when it
// is there.
func (d *database) keepIndexed(ctx context.Context, looked func(records int64)) {
	for {
		done, err := d.renew(ctx, looked)
		if done || ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.WarnContext(ctx, "index a site's records; it is tried again", "siteKey", d.key, "error", err)
		}
		timer := time.NewTimer(reindexDelay)
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
	state, err := site.Renew(ctx, d.extraction.Version, func(progress postgres.Reindexed) {
		d.indexed.Store(int32(indexing))
		if progress.Looked > before {
			looked(progress.Looked - before)
		}
		before = progress.Looked
	})
	if err != nil || state != postgres.Current {
		return false, err
	}
	d.indexed.Store(int32(indexed))
	return true, nil
}

// Reindexed is how many records this process has looked at to bring indexes up to date.
func (s *Sites) Reindexed() int64 { return s.databases.reindexed.Load() }

// reportIndex reports the index's state when it has changed here: other processes may be of
// another release and say otherwise.
func (d *database) reportIndex(set func(*metav1.Condition) error) error {
	state := indexState(d.indexed.Load())
	if state == d.reported {
		return nil
	}
	if err := set(indexReady(state, d.extraction.Version)); err != nil {
		return err
	}
	d.reported = state
	return nil
}

func indexReady(state indexState, version int64) *metav1.Condition {
	if state == indexing {
		return &metav1.Condition{
			Type: sitesv1.ConditionIndexReady, Status: metav1.ConditionFalse, Reason: sitesv1.ReasonIndexing,
			Message: fmt.Sprintf("records are being indexed by version %d; searches for what is new may not find all of them", version),
		}
	}
	return &metav1.Condition{
		Type: sitesv1.ConditionIndexReady, Status: metav1.ConditionTrue, Reason: sitesv1.ReasonIndexed,
		Message: fmt.Sprintf("all records are indexed by version %d", version),
	}
}
