package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// sweepInterval is the time between two searches of the index for unfinished purges, and between two
	// passes of retention.
	sweepInterval = time.Minute
	// removedMemory is how long removed Records are kept in index.removed. It is far longer than a
	// response or a watch event of kube-apiserver can be delayed. When a removal is forgotten, older marks
	// of Store.ChangedSince become invalid.
	removedMemory = 10 * time.Minute
	// listSweepInterval is the time between two lists of all RecordHistories and RecordClaims for
	// orphans.
	listSweepInterval = time.Hour
)

// sweep removes what interrupted writers left behind, until ctx ends: unfinished purges,
// RecordHistories that a late writer created for a purged record, and entries of RecordClaims that
// no Record lists. It also enforces the retention of the sites. Each replica runs it.
func (c *Cluster) sweep(ctx context.Context) {
	select {
	case <-c.synced:
	case <-ctx.Done():
		return
	}
	var listed time.Time
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		c.sweepPurges(ctx)
		c.sweepRetention(ctx)
		if now := c.now(); now.Sub(listed) >= listSweepInterval {
			if err := errors.Join(c.sweepHistories(ctx), c.sweepClaimObjects(ctx)); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "cannot remove orphaned histories and claims; the server will retry", "error", err)
			} else {
				listed = now
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *Cluster) sweepPurges(ctx context.Context) {
	for id, index := range c.indexes() {
		index.forgetRemoved(c.now().Add(-removedMemory), c.seen.Load())
		site := &Store{engine: c, namespace: id.namespace, key: id.key, index: index}
		for _, obj := range index.unfinishedPurges(c.now().Add(-2 * claimDeadline)) {
			if err := site.finishPurge(ctx, obj); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "cannot finish a purge; the server will retry", "record", obj.Name, "namespace", id.namespace, "error", err)
			}
		}
	}
}

// unfinishedPurges returns the Records of purged records, and the placeholders, whose Updated is before
// a time. Updated is the start of the creation for a placeholder, and the time of the newest version for
// a purged record, so its purge may still be in progress. unfinishedPurges leaves out Records with
// events, which the delivery process removes.
func (x *index) unfinishedPurges(before time.Time) []*recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*recordsv1.Record
	for _, e := range x.names {
		if e.obj.Spec.Purging && !e.obj.Spec.HasEvents && e.obj.Spec.Updated.Time.Before(before) {
			found = append(found, e.obj)
		}
	}
	return found
}

func (c *Cluster) sweepHistories(ctx context.Context) error {
	return eachPage(objects.Histories, func(options metav1.ListOptions) (string, error) {
		var page recordsv1.RecordHistoryList
		if err := c.client.List(ctx, objects.Histories, options, &page); err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := c.sweepHistory(ctx, &page.Items[i]); err != nil {
				return "", err
			}
		}
		return page.Continue, nil
	})
}

func (c *Cluster) sweepClaimObjects(ctx context.Context) error {
	return eachPage(objects.Claims, func(options metav1.ListOptions) (string, error) {
		var page recordsv1.RecordClaimList
		if err := c.client.List(ctx, objects.Claims, options, &page); err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := c.sweepClaimObject(ctx, &page.Items[i]); err != nil {
				return "", err
			}
		}
		return page.Continue, nil
	})
}

func eachPage(resource string, sweep func(metav1.ListOptions) (string, error)) error {
	options := metav1.ListOptions{Limit: 500}
	for {
		var err error
		if options.Continue, err = sweep(options); err != nil || options.Continue == "" {
			return objects.StoreError("remove orphans of "+resource, err)
		}
	}
}

func (c *Cluster) sweepClaimObject(ctx context.Context, claimObject *recordsv1.RecordClaim) error {
	id := siteID{namespace: claimObject.Namespace, key: claimObject.Spec.SiteKey}
	site := &Store{engine: c, namespace: id.namespace, key: id.key, index: c.index(id)}
	gone := map[string]bool{}
	for _, entry := range claimObject.Spec.Entries {
		active, err := site.isActive(ctx, claimObject.Spec.Line, entry)
		if !active && err != nil && !errors.Is(err, errConflict) {
			return err
		}
		gone[entry.Nonce] = !active && err == nil
	}
	if len(gone) == 0 {
		return nil
	}
	return site.updateClaimObject(ctx, claimObject.Spec.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
		kept := slices.DeleteFunc(slices.Clone(entries), func(e recordsv1.ClaimEntry) bool { return gone[e.Nonce] })
		if len(kept) == len(entries) {
			return nil, errNoChange
		}
		return kept, nil
	})
}

func (c *Cluster) sweepHistory(ctx context.Context, history *recordsv1.RecordHistory) error {
	id := siteID{namespace: history.Namespace, key: history.Spec.SiteKey}
	site := &Store{engine: c, namespace: id.namespace, key: id.key, index: c.index(id)}
	owned := func(obj *recordsv1.Record) bool {
		return obj != nil && obj.Spec.Lineage == history.Spec.Lineage
	}
	young := c.now().Sub(history.CreationTimestamp.Time) < 2*claimDeadline
	if young || owned(site.index.lookup(history.Spec.Record)) {
		return nil
	}
	obj, err := site.fetch(ctx, history.Spec.Record)
	if err != nil || owned(obj) {
		return err
	}
	err = c.client.Delete(ctx, objects.Histories, history.Namespace, history.Name, &history.ObjectMeta)
	return objects.StoreError("remove orphaned history "+history.Name, err)
}
