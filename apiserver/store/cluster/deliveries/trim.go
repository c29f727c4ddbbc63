package deliveries

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// trimInterval is the time between two trims of a namespace. A trim starts earlier when trimPosted
	// posted events were relayed since the last one.
	trimInterval = 10 * time.Minute
	trimPosted   = 100
	// keepGivenUp is how long dead letters are kept if Options.Retention does not say otherwise.
	keepGivenUp = 7 * 24 * time.Hour
	// keepPosted and maxPosted limit the Records of posted events per site, by which an event that is
	// posted again is recognized. Of the Records whose events were relayed, those older than
	// keepPosted are removed, and the oldest Records beyond maxPosted.
	keepPosted = 24 * time.Hour
	maxPosted  = 1000
)

// trimLoop trims the namespace every trimInterval and at each signal of q.trims, until ctx ends.
func (q *queue) trimLoop(ctx context.Context) {
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-q.trims:
		}
		if err := q.trim(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot trim deliveries and events; the server will retry", "namespace", q.namespace, "error", err)
			q.sleep(ctx, retryDelay)
			signal(q.trims)
		}
	}
}

// trim removes the dead letters and the posted events of the namespace that are no longer kept.
func (q *queue) trim(ctx context.Context) error {
	q.mu.Lock()
	q.posted = 0
	keys := maps.Clone(q.keys)
	q.mu.Unlock()
	for key := range keys {
		if err := q.trimGivenUp(ctx, key); err != nil {
			return err
		}
		if err := q.trimEvents(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) trimGivenUp(ctx context.Context, key string) error {
	keep := time.Duration(0)
	if q.options.Retention != nil {
		keep = q.options.Retention(q.namespace, key)
	}
	before := q.options.Clock.Now().Add(-cmp.Or(keep, keepGivenUp))
	return q.eachMetadataIn(ctx, objects.Delivery, "spec.siteKey="+key+",spec.status!="+string(recordsv1.DeliveryPending), func(obj *metav1.PartialObjectMetadata) error {
		if s, ok := summaryOf(obj); !ok || !time.UnixMilli(s.Since).Before(before) {
			return nil
		}
		return q.removeAsRead(ctx, objects.Delivery, obj)
	})
}

func (q *queue) trimEvents(ctx context.Context, key string) error {
	var posted []*metav1.PartialObjectMetadata
	err := q.eachMetadataIn(ctx, objects.Records, "spec.siteKey="+key+",spec.type="+EventType+",spec.hasEvents!=true", func(obj *metav1.PartialObjectMetadata) error {
		posted = append(posted, obj)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(posted, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	before := q.options.Clock.Now().Add(-keepPosted)
	for i, obj := range posted {
		if i < maxPosted && obj.CreationTimestamp.After(before) {
			continue
		}
		if err := q.removeAsRead(ctx, objects.Records, obj); err != nil {
			return err
		}
	}
	return nil
}

// removeAsRead deletes an object unless it has changed since it was read.
func (q *queue) removeAsRead(ctx context.Context, resource string, obj *metav1.PartialObjectMetadata) error {
	err := q.client.Delete(ctx, resource, q.namespace, obj.Name, &obj.ObjectMeta)
	if apierrors.IsConflict(err) {
		return nil
	}
	return objects.StoreError("remove "+resource+" "+obj.Name, err)
}

func (q *queue) eachMetadataIn(ctx context.Context, resource, selector string, visit func(*metav1.PartialObjectMetadata) error) error {
	options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	for {
		page, err := q.client.ListMetadata(ctx, resource, q.namespace, options)
		if err != nil {
			return objects.StoreError("list "+resource, err)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
