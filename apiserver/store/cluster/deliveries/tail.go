package deliveries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Watermarks returns two sequences of events of a site. No event that this replica has seen has a greater
// sequence than newest. All events up to relayed have been relayed: their deliveries are stored
// outside Records. Both are 0 before the first list of Records.
type Watermarks func() (newest, relayed int64)

// NewTail returns a reader that follows the deliveries of the site with a site key in a namespace.
func NewTail(client *objects.Client, namespace, key string, now func() time.Time, watermarks Watermarks) delivery.Tail {
	return &tail{log{client: client, namespace: namespace, key: key, now: now}, watermarks}
}

type tail struct {
	log
	watermarks Watermarks
}

// After implements delivery.Tail. Deliveries are created in any order. So After returns a delivery
// only if all events up to its sequence have been relayed. It reads that watermark before it
// lists the deliveries.
func (t *tail) After(ctx context.Context, webhook string, after delivery.Position, count int) ([]delivery.Delivery, delivery.Position, error) {
	newest, relayed := t.watermarks()
	switch {
	case newest == 0:
		return nil, after, fmt.Errorf("follow deliveries: the list of records is not complete yet: %w", store.ErrUnavailable)
	case after == (delivery.Position{}):
		return nil, delivery.Position{Sequence: newest}, nil
	case relayed <= after.Sequence:
		return nil, after, nil
	}
	all, err := t.matches(ctx, delivery.Query{Webhook: webhook})
	if err != nil {
		return nil, after, err
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.sequence <= after.Sequence || c.sequence > relayed })
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.sequence, b.sequence) })
	next := delivery.Position{Sequence: relayed}
	if len(all) > count {
		all = all[:count]
		next = delivery.Position{Sequence: all[count-1].sequence}
	}
	var found []delivery.Delivery
	for _, c := range all {
		d, err := t.Delivery(ctx, webhook, c.id)
		if errors.Is(err, store.ErrNotFound) {
			continue // the log has dropped it since it was listed
		}
		if err != nil {
			return nil, after, err
		}
		found = append(found, d)
	}
	return found, next, nil
}
