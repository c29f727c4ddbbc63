package ahds_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

// deliveryLog keeps deliveries in memory, as storage engines keep them.
type deliveryLog struct {
	mu  sync.Mutex
	all []delivery.Delivery
}

func (l *deliveryLog) add(deliveries ...delivery.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, deliveries...)
}

func (l *deliveryLog) chosen(q delivery.Query) []*delivery.Delivery {
	var chosen []*delivery.Delivery
	for i := range l.all {
		d := &l.all[i]
		at := d.Event.Accepted
		if d.Webhook == q.Webhook && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, d.Status)) &&
			!at.Before(q.From) && (q.To.IsZero() || at.Before(q.To)) {
			chosen = append(chosen, d)
		}
	}
	slices.SortFunc(chosen, func(a, b *delivery.Delivery) int {
		return cmp.Or(b.Event.Accepted.Compare(a.Event.Accepted), cmp.Compare(a.ID, b.ID))
	})
	return chosen
}

func (l *deliveryLog) Deliveries(_ context.Context, q delivery.Query) ([]delivery.Delivery, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := l.chosen(q)
	from := min(q.Offset, len(chosen))
	var found []delivery.Delivery
	for _, d := range chosen[from:min(from+q.Count, len(chosen))] {
		found = append(found, *d)
	}
	return found, int64(len(chosen)), nil
}

func (l *deliveryLog) find(webhook, id string) (*delivery.Delivery, error) {
	for i := range l.all {
		if l.all[i].Webhook == webhook && l.all[i].ID == id {
			return &l.all[i], nil
		}
	}
	return nil, store.ErrNotFound
}

func (l *deliveryLog) Delivery(_ context.Context, webhook, id string) (delivery.Delivery, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.find(webhook, id)
	if err != nil {
		return delivery.Delivery{}, err
	}
	return *d, nil
}

func (l *deliveryLog) Redeliver(_ context.Context, webhook, id string) (delivery.Delivery, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.find(webhook, id)
	if err != nil {
		return delivery.Delivery{}, err
	}
	if len(d.Event.Envelope) == 0 {
		return delivery.Delivery{}, delivery.ErrContentGone
	}
	d.Status, d.NextAttempt, d.Finished = delivery.Pending, now(), time.Time{}
	return *d, nil
}

func (l *deliveryLog) Replay(_ context.Context, q delivery.Query) (delivery.Replayed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var replayed delivery.Replayed
	for _, d := range l.chosen(q) {
		switch {
		case d.Status == delivery.Pending:
		case len(d.Event.Envelope) == 0:
			replayed.Skipped++
		default:
			d.Status, d.NextAttempt, d.Finished = delivery.Pending, now(), time.Time{}
			replayed.Count++
		}
	}
	return replayed, nil
}

func (l *deliveryLog) Recent(_ context.Context, from time.Time) (delivery.Recent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := delivery.NewRecentCounts(from)
	for i := range l.all {
		if d := &l.all[i]; !d.Event.Accepted.Before(from) {
			counts.Add(d.Event.Accepted, d.Status, 1)
		}
	}
	return counts.Recent(), nil
}

func (l *deliveryLog) Health(context.Context) (map[string]delivery.Health, error) { return nil, nil }

// outbox queues the events of writes for delivery when these are done.
type outbox struct {
	store.Store
	log *deliveryLog
}

func (o outbox) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	results, err := o.Store.Write(ctx, ops)
	for i := range results {
		if ops[i].Events == nil || results[i].Outcome == store.Unchanged {
			continue
		}
		for n, event := range ops[i].Events(store.Change{Outcome: results[i].Outcome, After: &results[i].Record}) {
			at := now().UTC().Truncate(time.Millisecond)
			accepted := store.AcceptedEvent{
				Sequence: int64(n + 1), Accepted: at, ID: event.ID, Type: event.Type, Subject: event.Subject, Targets: event.Targets,
				Envelope: event.Envelope.Fill(int64(n+1), 1, at),
			}
			for _, target := range event.Targets {
				o.log.add(delivery.Delivery{ID: delivery.DeliveryID(event.ID, target), Webhook: target, Event: accepted, Status: delivery.Pending, NextAttempt: at})
			}
		}
	}
	return results, err
}
