package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

const (
	// sweepInterval is how often unfinished purges are looked for, in memory.
	sweepInterval = time.Minute
	// removedMemory is far longer than any answer of the API server can be late.
	removedMemory = 10 * time.Minute
	// listSweepInterval is how often histories and ledgers are listed.
	listSweepInterval = time.Hour
)

// sweep finishes what writers left that ended in the middle: purges, histories
// that a late writer made for a record just purged, and claims in ledgers that no
// record lists any more.
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
		if now := c.now(); now.Sub(listed) >= listSweepInterval {
			if err := errors.Join(c.sweepHistories(ctx), c.sweepLedgers(ctx)); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "sweep histories and ledgers", "error", err)
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
		index.forgetRemoved(c.now().Add(-removedMemory))
		site := &Site{engine: c, namespace: id.namespace, key: id.key, index: index}
		for _, obj := range index.unfinishedPurges(c.now().Add(-2 * claimDeadline)) {
			if err := site.finishPurge(ctx, obj); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "finish a purge", "record", obj.Name, "namespace", id.namespace, "error", err)
			}
		}
	}
}

// unfinishedPurges lists the Records that were being purged, or made, before a time.
func (x *index) unfinishedPurges(before time.Time) []*recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*recordsv1.Record
	for _, e := range x.names {
		if e.obj.Spec.Purging && e.obj.Spec.Updated.Time.Before(before) {
			found = append(found, e.obj)
		}
	}
	return found
}

// sweepHistories removes the histories that no Record owns.
func (c *Cluster) sweepHistories(ctx context.Context) error {
	return eachPage(historiesResource, func(options metav1.ListOptions) (string, error) {
		var page recordsv1.RecordHistoryList
		if err := c.client.list(ctx, historiesResource, options, &page); err != nil {
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

// sweepLedgers takes the claims out of ledgers that do not count any more.
func (c *Cluster) sweepLedgers(ctx context.Context) error {
	return eachPage(claimsResource, func(options metav1.ListOptions) (string, error) {
		var page recordsv1.RecordClaimList
		if err := c.client.list(ctx, claimsResource, options, &page); err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := c.sweepLedger(ctx, &page.Items[i]); err != nil {
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
			return storeError("sweep "+resource, err)
		}
	}
}

func (c *Cluster) sweepLedger(ctx context.Context, ledger *recordsv1.RecordClaim) error {
	id := siteID{namespace: ledger.Namespace, key: ledger.Spec.SiteKey}
	site := &Site{engine: c, namespace: id.namespace, key: id.key, index: c.index(id)}
	gone := map[string]bool{}
	for _, entry := range ledger.Spec.Entries {
		counts, err := site.counts(ctx, ledger.Spec.Line, entry)
		if !counts && err != nil && !errors.Is(err, errStale) {
			return err
		}
		gone[entry.Nonce] = !counts && err == nil
	}
	if len(gone) == 0 {
		return nil
	}
	return site.changeLedger(ctx, ledger.Spec.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
		kept := slices.DeleteFunc(slices.Clone(entries), func(e recordsv1.ClaimEntry) bool { return gone[e.Nonce] })
		if len(kept) == len(entries) {
			return nil, errNothingToChange
		}
		return kept, nil
	})
}

func (c *Cluster) sweepHistory(ctx context.Context, history *recordsv1.RecordHistory) error {
	id := siteID{namespace: history.Namespace, key: history.Spec.SiteKey}
	site := &Site{engine: c, namespace: id.namespace, key: id.key, index: c.index(id)}
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
	err = c.client.delete(ctx, historiesResource, history.Namespace, history.Name, &history.ObjectMeta)
	return storeError("remove orphaned history "+history.Name, err)
}
