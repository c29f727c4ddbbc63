package deliveries

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// archive implements delivery.Archive.
type archive struct{ *log }

// NewArchive returns the archive of the deliveries of the site with a site key in a namespace. It
// cannot restore deliveries: RestorePending fails with ErrPending if there are pending deliveries, and
// RestoreEnded does nothing.
func NewArchive(client *objects.Client, namespace, key string) delivery.Archive {
	return archive{&log{client: client, namespace: namespace, key: key}}
}

// DumpPending implements delivery.Archive.
func (a archive) DumpPending(ctx context.Context) (delivery.Backlog, error) {
	pending := delivery.Backlog{States: map[string]delivery.State{}}
	known := map[string]bool{}
	if err := a.eachRing(ctx, func(webhook string, r *ring) {
		pending.States[webhook] = r.state
		for i := range r.done {
			known[r.done[i].id()] = true
		}
	}); err != nil {
		return pending, err
	}
	err := a.eachObject(ctx, func(obj *recordsv1.WebhookDelivery) error {
		known[obj.Name] = true
		if obj.Spec.Status != recordsv1.DeliveryPending {
			return nil
		}
		archived, err := archivedOf(&obj.Spec)
		pending.Deliveries = append(pending.Deliveries, archived)
		pending.Sequence = max(pending.Sequence, obj.Spec.Sequence)
		return err
	})
	if err != nil {
		return pending, err
	}
	err = a.eachEvent(ctx, func(event store.AcceptedEvent) {
		pending.Sequence = max(pending.Sequence, event.Sequence)
		for _, webhook := range event.Targets {
			id := delivery.DeliveryID(event.ID, webhook)
			if known[id] {
				continue // the event was relayed, and has not been removed from the Record yet
			}
			known[id] = true
			one := event
			one.Targets = []string{webhook}
			pending.Deliveries = append(pending.Deliveries, delivery.Archived{Delivery: delivery.Delivery{
				ID: id, Webhook: webhook, Event: one, Status: delivery.Pending, NextAttempt: event.Accepted,
			}})
		}
	})
	if err != nil {
		return pending, err
	}
	// All events so far, including those that were delivered, have sequences below that of a write that
	// is made now.
	version, err := a.currentVersion(ctx)
	if err != nil {
		return pending, err
	}
	upcoming, err := sequence(version, MaxPerWrite-1)
	pending.Sequence = max(pending.Sequence, upcoming)
	return pending, err
}

// currentVersion returns the current resourceVersion of the cluster.
func (a archive) currentVersion(ctx context.Context) (string, error) {
	page, err := a.client.ListMetadata(ctx, objects.Records, a.namespace, metav1.ListOptions{Limit: 1})
	return page.ResourceVersion, objects.StoreError("read the resourceVersion of the cluster", err)
}

func archivedOf(spec *recordsv1.WebhookDeliverySpec) (delivery.Archived, error) {
	archived := delivery.Archived{Delivery: toDelivery(spec), Scheduled: int(spec.Scheduled)}
	var err error
	archived.Event, err = eventOf(spec)
	return archived, err
}

// eachObject calls visit with each WebhookDelivery of the site.
func (a archive) eachObject(ctx context.Context, visit func(*recordsv1.WebhookDelivery) error) error {
	return eachPage(ctx, a.client, objects.Delivery, a.namespace, a.ofSite(), func(page *recordsv1.WebhookDeliveryList) error {
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachEvent calls visit with each event in a Record of the site.
func (a archive) eachEvent(ctx context.Context, visit func(store.AcceptedEvent)) error {
	return eachPage(ctx, a.client, objects.Records, a.namespace, eventsSelector+","+a.ofSite(), func(page *recordsv1.RecordList) error {
		for i := range page.Items {
			record := &page.Items[i]
			for j := range record.Spec.Events {
				event, err := Accept(&record.Spec.Events[j], record.ResourceVersion)
				if err != nil {
					return err
				}
				visit(event)
			}
		}
		return nil
	})
}

// eachRing calls visit with the log of each webhook.
func (a archive) eachRing(ctx context.Context, visit func(webhook string, r *ring)) error {
	return eachPage(ctx, a.client, objects.Logs, a.namespace, a.ofSite(), func(page *recordsv1.WebhookDeliveryLogList) error {
		for i := range page.Items {
			r, err := ringOf(&page.Items[i])
			if err != nil {
				return err
			}
			visit(page.Items[i].Spec.Webhook, r)
		}
		return nil
	})
}

// ofSite is the field selector of the site's objects.
func (a archive) ofSite() string { return "spec.siteKey=" + fields.EscapeValue(a.key) }

// eachPage calls visit with each page of the objects of a resource in a namespace that a field selector
// selects.
func eachPage[L any, P interface {
	*L
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, client *objects.Client, resource, namespace, selector string, visit func(P) error) error {
	options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize / 10}
	for {
		page := P(new(L))
		if err := client.ListIn(ctx, resource, namespace, options, page); err != nil {
			return objects.StoreError("list "+resource, err)
		}
		if err := visit(page); err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// DumpEnded implements delivery.Archive. It returns all ended deliveries at once, because their
// number is limited. If the log has dropped the envelope of a delivery, the delivery is returned
// without the envelope. A delivery that was repeated after a success may have ended twice. Then DumpEnded
// returns the later end, which is in the WebhookDelivery, and not the success in the log.
func (a archive) DumpEnded(ctx context.Context, _ string, _ int) ([]delivery.Archived, string, error) {
	var ended []delivery.Archived
	known := map[string]bool{}
	err := a.eachObject(ctx, func(obj *recordsv1.WebhookDelivery) error {
		if obj.Spec.Status == recordsv1.DeliveryPending {
			return nil
		}
		archived, err := archivedOf(&obj.Spec)
		ended, known[archived.ID] = append(ended, archived), true
		return err
	})
	if err != nil {
		return nil, "", err
	}
	err = a.eachRing(ctx, func(_ string, r *ring) {
		for i := range r.done {
			if known[r.done[i].id()] {
				continue
			}
			archived := delivery.Archived{Delivery: toDelivery(&r.done[i].WebhookDeliverySpec), Scheduled: int(r.done[i].Scheduled)}
			archived.Event.Envelope = []byte(r.done[i].Text)
			ended = append(ended, archived)
		}
	})
	return ended, "", err
}

// ErrPending means that the backlog to restore has pending deliveries, which this engine cannot
// restore.
var ErrPending = errors.New("deliveries to webhooks are pending, and cannot be moved to storage.type Cluster: wait until they have ended, or disable the webhooks")

// RestorePending implements delivery.Archive.
func (a archive) RestorePending(_ context.Context, pending delivery.Backlog, _ func(string) bool) error {
	if len(pending.Deliveries) > 0 {
		return ErrPending
	}
	return nil
}

// RestoreEnded implements delivery.Archive. It does nothing, because ended deliveries are not moved
// to this engine.
func (a archive) RestoreEnded(context.Context, []delivery.Archived) error { return nil }
