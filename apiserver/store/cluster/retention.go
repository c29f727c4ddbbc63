package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// retentionBatch is the maximum number of records of a site that one pass of retention changes. The
// next pass follows after sweepInterval.
const retentionBatch = 200

// Retain purges the tombstones and removes the superseded versions from before the cutoffs, of at
// most 200 records. It leaves out records of posted events, and records whose events were not handed
// on yet. The other versions keep their numbers. Several replicas may call Retain at the same time:
// each removal begins with a write that changes nothing if the record has changed. removed also counts
// removals that did nothing because another replica was faster. Errors: store.ErrUnavailable.
func (s *Store) Retain(ctx context.Context, before store.Cutoffs) (removed store.Retained, err error) {
	for _, obj := range s.index.outdated(before, retentionBatch) {
		if isOldTombstone(&obj.Spec, before.Tombstones) {
			if err = s.removeTombstone(ctx, obj); err != nil {
				return removed, err
			}
			removed.Tombstones++
		} else {
			n := supersededBefore(&obj.Spec, before.Versions)
			if err = s.dropVersions(ctx, obj, n); err != nil {
				return removed, err
			}
			removed.Versions += int64(n)
		}
	}
	return removed, nil
}

// outdated returns up to most Records of which something is from before the cutoffs. It leaves out
// Records of posted events, and Records with events, which the delivery process writes.
func (x *index) outdated(before store.Cutoffs, most int) (found []*recordsv1.Record) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, e := range x.names {
		spec := &e.obj.Spec
		if len(found) == most {
			break
		}
		if spec.Purging || spec.HasEvents || spec.Type == deliveries.EventType {
			continue
		}
		if isOldTombstone(spec, before.Tombstones) || supersededBefore(spec, before.Versions) > 0 {
			found = append(found, e.obj)
		}
	}
	return found
}

func isOldTombstone(spec *recordsv1.RecordSpec, before time.Time) bool {
	return spec.Deleted && spec.Updated.Time.Before(before)
}

// supersededBefore returns how many of the superseded versions of a record were superseded before a
// time. These are the oldest versions. An older release did not store the times of versions. Versions
// without a time count as superseded when the oldest version with a time was written.
func supersededBefore(spec *recordsv1.RecordSpec, before time.Time) int {
	if before.IsZero() || len(spec.History) == 0 {
		return 0
	}
	if spec.Updated.Time.Before(before) {
		return len(spec.History)
	}
	// The version at index i was superseded when the next one was written.
	n := 0
	unknown := len(spec.History) - len(spec.HistoryUpdated)
	for i := range spec.HistoryUpdated {
		if time.UnixMilli(spec.HistoryUpdated[i]).Before(before) {
			n = unknown + i
		}
	}
	return max(n, 0)
}

// SetRetention sets how long the site keeps tombstones and versions, which each replica enforces in the
// background. It ignores Retention.Deliveries, for which deliveries.Options has Retention.
func (s *Store) SetRetention(retention store.Retention) { s.index.retention.Store(&retention) }

// Retained returns the numbers of tombstones and superseded versions of all sites that this process
// has removed because of their retention.
func (c *Cluster) Retained() store.Retained {
	return store.Retained{Tombstones: c.retainedTombstones.Load(), Versions: c.retainedVersions.Load()}
}

// sweepRetention enforces the retention of all sites.
func (c *Cluster) sweepRetention(ctx context.Context) {
	for id, index := range c.indexes() {
		retention := index.retention.Load()
		if retention == nil {
			continue
		}
		site := &Store{engine: c, namespace: id.namespace, key: id.key, index: index}
		removed, err := site.Retain(ctx, retention.Cutoffs(c.clock()))
		c.retainedTombstones.Add(removed.Tombstones)
		c.retainedVersions.Add(removed.Versions)
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			slog.WarnContext(ctx, "cannot enforce the retention of a site; the server will retry", "namespace", id.namespace, "error", err)
		}
	}
}
