package deliveries

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// pageSize is the maximum number of objects in the response to a list request.
	pageSize = 500
	// readers is the number of WebhookDeliveries that are read concurrently for one page.
	readers = 8
	// maxConflicts is the maximum number of attempts of a change that fails because the object was
	// changed by another writer. After that the change fails.
	maxConflicts = 10
)

// log implements delivery.Log by the objects of a site. A pending delivery or a dead letter is a
// WebhookDelivery. The successful deliveries of a webhook are in its WebhookDeliveryLog. A delivery that
// is in neither, because its event is only in a Record yet, is not in the log.
type log struct {
	client         *objects.Client
	namespace, key string
	now            func() time.Time
}

// NewLog returns the log of the deliveries of the site with a site key in a namespace. now is the clock
// by which repeated deliveries are due.
func NewLog(client *objects.Client, namespace, key string, now func() time.Time) delivery.Log {
	return &log{client: client, namespace: namespace, key: key, now: now}
}

// candidate is a delivery that matches a query. done is nil unless the delivery is in the
// WebhookDeliveryLog.
type candidate struct {
	id                 string
	accepted, sequence int64
	status             recordsv1.DeliveryStatus
	done               *delivered
}

// Deliveries implements delivery.Log. A delivery that succeeds while the page is read may be missing.
func (l *log) Deliveries(ctx context.Context, query delivery.Query) ([]delivery.Delivery, int64, error) {
	matches, err := l.matches(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	from := min(max(0, query.Offset), len(matches))
	page := matches[from:min(len(matches), from+max(0, query.Count))]
	read := make([]*delivery.Delivery, len(page))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range page {
		group.Go(func() error {
			if done := page[i].done; done != nil {
				d := toDelivery(&done.WebhookDeliverySpec)
				read[i] = &d
				return nil
			}
			obj, err := l.object(ctx, query.Webhook, page[i].id)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			d := toDelivery(&obj.Spec)
			read[i] = &d
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	var found []delivery.Delivery
	for _, d := range read {
		if d != nil {
			found = append(found, *d)
		}
	}
	return found, int64(len(matches)), nil
}

// matches returns all deliveries that match a query, the newest event first. It ignores Offset and
// Count.
func (l *log) matches(ctx context.Context, query delivery.Query) ([]candidate, error) {
	var found []candidate
	known := map[string]bool{}
	wanted := func(c candidate) bool {
		accepted := time.UnixMilli(c.accepted)
		return (len(query.Statuses) == 0 || slices.Contains(query.Statuses, statusOf(c.status))) &&
			(query.From.IsZero() || !accepted.Before(query.From)) && (query.To.IsZero() || accepted.Before(query.To))
	}
	take := func(c candidate) {
		if !known[c.id] && wanted(c) {
			found = append(found, c)
		}
		known[c.id] = true
	}
	// A successful delivery is added to the log before its WebhookDelivery is deleted. So the log must
	// be read after the WebhookDeliveries, to miss no delivery.
	err := l.eachSummary(ctx, ",spec.webhook="+fields.EscapeValue(query.Webhook), func(id string, s summary) {
		take(candidate{id: id, accepted: s.Accepted, sequence: s.Sequence, status: s.Status})
	})
	if err != nil {
		return nil, err
	}
	if len(query.Statuses) == 0 || slices.Contains(query.Statuses, delivery.Delivered) {
		r, err := readRing(ctx, l.client, l.namespace, l.key, query.Webhook)
		if err != nil {
			return nil, err
		}
		for i := range r.done {
			d := &r.done[i]
			take(candidate{id: d.id(), accepted: d.Accepted.UnixMilli(), sequence: d.Sequence, status: d.Status, done: d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.accepted, a.accepted), cmp.Compare(b.sequence, a.sequence), cmp.Compare(a.id, b.id))
	})
	return found, nil
}

// eachSummary calls visit with the readable summaries of the site's WebhookDeliveries that match a field
// selector, which starts with a comma.
func (l *log) eachSummary(ctx context.Context, selector string, visit func(id string, s summary)) error {
	options := metav1.ListOptions{FieldSelector: "spec.siteKey=" + l.key + selector, Limit: pageSize}
	for {
		page, err := l.client.ListMetadata(ctx, objects.Delivery, l.namespace, options)
		if err != nil {
			return objects.StoreError("list deliveries", err)
		}
		for i := range page.Items {
			if s, ok := summaryOf(&page.Items[i]); ok {
				visit(page.Items[i].Name, s)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// object reads the WebhookDelivery with an id. Errors: store.ErrNotFound, also if it is a delivery
// to another webhook.
func (l *log) object(ctx context.Context, webhook, id string) (*recordsv1.WebhookDelivery, error) {
	if uuid.Validate(id) != nil {
		return nil, store.ErrNotFound
	}
	var obj recordsv1.WebhookDelivery
	err := l.client.Get(ctx, objects.Delivery, l.namespace, id, &obj)
	if apierrors.IsNotFound(err) || err == nil && (obj.Spec.SiteKey != l.key || obj.Spec.Webhook != webhook) {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, objects.StoreError("read delivery "+id, err)
	}
	return &obj, nil
}

// Delivery implements delivery.Log. The event of a successful delivery has no Envelope if the log
// has dropped it because of maxDeliveredBytes.
func (l *log) Delivery(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	obj, err := l.object(ctx, webhook, id)
	if err == nil {
		d := toDelivery(&obj.Spec)
		d.Event, err = eventOf(&obj.Spec)
		return d, err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return delivery.Delivery{}, err
	}
	r, err := readRing(ctx, l.client, l.namespace, l.key, webhook)
	if err != nil {
		return delivery.Delivery{}, err
	}
	done := r.find(id)
	if done == nil {
		return delivery.Delivery{}, store.ErrNotFound
	}
	d := toDelivery(&done.WebhookDeliverySpec)
	if done.Text != "" {
		d.Event.Envelope = []byte(done.Text)
	}
	return d, nil
}

// Redeliver implements delivery.Log. It creates a new WebhookDelivery for a successful delivery in
// the log. It returns delivery.ErrContentGone if the log has dropped the envelope of the event.
func (l *log) Redeliver(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	for range maxConflicts {
		obj, err := l.object(ctx, webhook, id)
		switch {
		case err == nil:
			err = l.reschedule(ctx, obj)
		case errors.Is(err, store.ErrNotFound):
			obj, err = l.restore(ctx, webhook, id)
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			continue
		}
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, delivery.ErrContentGone) {
			return delivery.Delivery{}, err
		}
		if err != nil {
			return delivery.Delivery{}, objects.StoreError("repeat delivery "+id, err)
		}
		return toDelivery(&obj.Spec), nil
	}
	return delivery.Delivery{}, fmt.Errorf("repeat delivery %s: the delivery changed during each of %d attempts: %w", id, maxConflicts, store.ErrUnavailable)
}

// reschedule makes a WebhookDelivery pending, with an attempt that is due now. Errors are those of
// the API server.
func (l *log) reschedule(ctx context.Context, obj *recordsv1.WebhookDelivery) error {
	reschedule(&obj.Spec, l.now())
	patch, err := changePatch(obj)
	if err == nil {
		_, err = l.client.MergePatch(ctx, objects.Delivery, l.namespace, obj.Name, patch)
	}
	return err
}

// restore creates a pending WebhookDelivery for a successful delivery in the log. Errors:
// store.ErrNotFound, delivery.ErrContentGone, and those of the API server.
func (l *log) restore(ctx context.Context, webhook, id string) (*recordsv1.WebhookDelivery, error) {
	r, err := readRing(ctx, l.client, l.namespace, l.key, webhook)
	if err != nil {
		return nil, err
	}
	done := r.find(id)
	if done == nil {
		return nil, store.ErrNotFound
	}
	if done.Text == "" {
		return nil, fmt.Errorf("repeat delivery %s to webhook %s: %w", id, webhook, delivery.ErrContentGone)
	}
	spec := done.WebhookDeliverySpec
	spec.Envelope = objects.Compress([]byte(done.Text), nil)
	reschedule(&spec, l.now())
	obj, err := newObject(l.namespace, spec)
	if err != nil {
		return nil, err
	}
	_, err = l.client.Create(ctx, objects.Delivery, l.namespace, obj)
	return obj, err
}

// changePatch returns the merge patch (RFC 7396) that writes the mutable fields of a
// WebhookDelivery. The patch fails with a conflict if the object has changed since it was read.
func changePatch(obj *recordsv1.WebhookDelivery) ([]byte, error) {
	annotations, err := annotate(&obj.Spec)
	if err != nil {
		return nil, err
	}
	spec := &obj.Spec
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": obj.ResourceVersion, "annotations": annotations, "managedFields": objects.NoManagedFields,
		},
		"spec": map[string]any{
			"status": spec.Status, "since": spec.Since, "nextAttempt": spec.NextAttempt, "scheduled": spec.Scheduled,
			"attempts": spec.Attempts, "lastReason": spec.LastReason,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a change of delivery %s: %w", obj.Name, err)
	}
	return patch, nil
}

// Replay implements delivery.Log.
func (l *log) Replay(ctx context.Context, query delivery.Query) (delivery.Replayed, error) {
	matches, err := l.matches(ctx, query)
	if err != nil {
		return delivery.Replayed{}, err
	}
	var replayed delivery.Replayed
	// An ordered webhook must get the oldest delivery first.
	for _, c := range slices.Backward(matches) {
		if c.status == recordsv1.DeliveryPending {
			continue
		}
		_, err := l.Redeliver(ctx, query.Webhook, c.id)
		switch {
		case err == nil:
			replayed.Count++
		case errors.Is(err, delivery.ErrContentGone):
			replayed.Skipped++
		case !errors.Is(err, store.ErrNotFound): // ErrNotFound: the log has dropped it since it was listed
			return replayed, err
		}
	}
	return replayed, nil
}

// Recent implements delivery.Log. Of successful deliveries, it counts only those that are still in the
// WebhookDeliveryLog, which keeps at most maxDelivered of a webhook.
func (l *log) Recent(ctx context.Context, from time.Time) (delivery.Recent, error) {
	counts, known := delivery.NewRecentCounts(from), map[string]bool{}
	add := func(id string, accepted time.Time, status recordsv1.DeliveryStatus) {
		if !known[id] && !accepted.Before(from) {
			counts.Add(accepted, statusOf(status), 1)
			known[id] = true
		}
	}
	// The log must be read after the WebhookDeliveries; see matches.
	if err := l.eachSummary(ctx, "", func(id string, s summary) { add(id, s.accepted(), s.Status) }); err != nil {
		return delivery.Recent{}, err
	}
	states, err := l.states(ctx)
	if err != nil {
		return delivery.Recent{}, err
	}
	for _, state := range states {
		if objects.FromMicro(state.LastSuccess).Before(from) {
			continue
		}
		r, err := readRing(ctx, l.client, l.namespace, l.key, state.Webhook)
		if err != nil {
			return delivery.Recent{}, err
		}
		for i := range r.done {
			d := &r.done[i]
			add(d.id(), d.Accepted.Time, d.Status)
		}
		if len(r.done) >= maxDelivered {
			// The log drops deliveries in the order in which they ended. So the events of dropped
			// deliveries were accepted before the oldest delivery in the log ended.
			counts.Incomplete(r.done[0].Since.Time)
		}
	}
	return counts.Recent(), nil
}

// states returns the health of the webhooks that have a WebhookDeliveryLog.
func (l *log) states(ctx context.Context) ([]healthSummary, error) {
	logs, err := l.client.ListMetadata(ctx, objects.Logs, l.namespace, metav1.ListOptions{FieldSelector: "spec.siteKey=" + l.key})
	if err != nil {
		return nil, objects.StoreError("list delivery logs", err)
	}
	all := make([]healthSummary, len(logs.Items))
	for i := range logs.Items {
		if err := json.Unmarshal([]byte(logs.Items[i].Annotations[summaryAnnotation]), &all[i]); err != nil {
			return nil, fmt.Errorf("read annotation %s of WebhookDeliveryLog %s: %w", summaryAnnotation, logs.Items[i].Name, err)
		}
	}
	return all, nil
}

// Health implements delivery.Log.
func (l *log) Health(ctx context.Context) (map[string]delivery.Health, error) {
	found := map[string]delivery.Health{}
	err := l.eachSummary(ctx, ",spec.status="+string(recordsv1.DeliveryPending), func(_ string, s summary) {
		h := found[s.Webhook]
		h.Pending++
		if at := s.accepted(); h.OldestPending.IsZero() || at.Before(h.OldestPending) {
			h.OldestPending = at
		}
		found[s.Webhook] = h
	})
	if err != nil {
		return nil, err
	}
	states, err := l.states(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		h := found[s.Webhook]
		h.LastSuccess, h.FailingSince = objects.FromMicro(s.LastSuccess), objects.FromMicro(s.FailingSince)
		found[s.Webhook] = h
	}
	return found, nil
}
