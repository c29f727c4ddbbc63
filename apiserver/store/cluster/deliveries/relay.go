package deliveries

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// creators is the maximum number of Records per namespace whose events are relayed concurrently. It
// also limits queue.removals.
const creators = 16

// relay relays the events in the Records that have arrived from the watch or, if mustList is true, in
// all Records of the namespace. It leaves out sites for which Options.Open returns false. If a list, or
// the Records that have arrived, have an event, they also have all events that were accepted earlier and
// were not relayed. So when relay returns, deliveries can be sent in the order of sequence.
//
// For each site, the first pass with events creates WebhookDeliveries, of which an earlier holder of
// the shard may have created some. Later passes hold the events (see hold).
func (q *queue) relay(ctx context.Context) error {
	if err := q.checkCreated(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	mustList, arrived := q.mustList, q.arrived
	q.mustList, q.listing, q.arrived = false, mustList, map[string]*recordsv1.Record{}
	clear(q.emptied)
	q.mu.Unlock()
	open := map[string]bool{}
	var err error
	if mustList { // the list has everything that has arrived
		err = q.relayListed(ctx, open)
		q.endListing()
	} else {
		err = q.relayEach(ctx, slices.Collect(maps.Values(arrived)), open)
	}
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.closed)
	for key, is := range open {
		if is {
			q.caughtUp[key] = true
		} else {
			q.closed[key] = true
		}
	}
	for _, e := range q.relayed {
		if q.entries[e.name] == nil {
			q.insert(e)
		} else if e.claim != nil { // a target that is listed twice
			q.release(e.claim.held)
		}
	}
	q.relayed = nil
	signal(q.wakeDispatch)
	return nil
}

// checkCreated deletes the unchecked WebhookDeliveries whose events are no longer in their Record, and their entries
// in relayed. Errors are those of the API server.
func (q *queue) checkCreated(ctx context.Context) error {
	for name, created := range q.unchecked {
		there, err := q.eventsOf(ctx, name)
		if err != nil {
			return err
		}
		erased, others, err := q.separate(ctx, notIn(there, created))
		if err != nil {
			return err
		}
		if q.relayed, err = q.dropErased(ctx, q.relayed, erased); err != nil {
			return err
		}
		q.relayed = append(q.relayed, others...)
		delete(q.unchecked, name)
	}
	return nil
}

// separate returns those of created that this process has created, and the new entries of those that an earlier
// holder of the shard has created, if they are pending: a request to create a WebhookDelivery fails without a
// response also if it exists. The holder has relayed its event and may have removed it since. Errors are those of
// the API server.
func (q *queue) separate(ctx context.Context, created []*entry) (own, others []*entry, err error) {
	for _, e := range created {
		if e.resourceVersion != "" { // kube-apiserver responded
			own = append(own, e)
			continue
		}
		found, err := q.find(ctx, e.hook, e.name)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return nil, nil, err
		case found != nil && found.object.Spec.Since.Equal(&e.object.Spec.Since), apierrors.IsNotFound(err):
			own = append(own, e)
		case found != nil:
			others = append(others, found)
		}
	}
	return own, others, nil
}

// noteUnchecked makes the next pass check WebhookDeliveries of a Record.
func (q *queue) noteUnchecked(record string, created []*entry) {
	if len(created) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unchecked[record] = created
}

// relayListed is relayEach for all Records of the namespace with events.
func (q *queue) relayListed(ctx context.Context, open map[string]bool) error {
	return eachPage(ctx, q.client, objects.Records, q.namespace, eventsSelector, func(page *recordsv1.RecordList) error {
		records := make([]*recordsv1.Record, len(page.Items))
		for i := range page.Items {
			records[i] = &page.Items[i]
		}
		return q.relayEach(ctx, records, open)
	})
}

// relayEach relays or holds the events of each Record of an open site, and adds the new entries to relayed.
// Records of other sites wait for the next pass. open reports for each key of a site whether it is open.
// relayEach adds the sites that are missing. During a pass open does not change, so that no event is relayed
// while an earlier one waits.
func (q *queue) relayEach(ctx context.Context, records []*recordsv1.Record, open map[string]bool) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, record := range records {
		key := record.Spec.SiteKey
		if _, known := open[key]; !known {
			_, open[key] = q.options.Open(q.namespace, key)
		}
		if !open[key] {
			q.putBack(record)
			continue
		}
		q.mu.Lock()
		q.keys[key] = true
		q.mu.Unlock()
		process := q.relayRecord
		if q.caughtUp[key] {
			process = q.hold
		}
		group.Go(func() error {
			made, err := process(ctx, record)
			mu.Lock()
			defer mu.Unlock()
			q.relayed = append(q.relayed, made...)
			return err
		})
	}
	return group.Wait()
}

// putBack keeps a Record for the next pass, unless it has been without events since.
func (q *queue) putBack(record *recordsv1.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if emptied := q.emptied[record.Name]; emptied == "" || newer(record.ResourceVersion, emptied) {
		q.keepLatest(record)
	}
}

// relayRecord creates the deliveries of a Record's events, and then removes the events from the
// Record. It returns the new pending deliveries. At an invalid event it stops without an error, and
// leaves all events in the Record. If it fails before it has tried to remove the events, the next pass checks what
// it has created (checkCreated).
func (q *queue) relayRecord(ctx context.Context, record *recordsv1.Record) (made []*entry, err error) {
	var last int64
	var created []*entry
	for i := range record.Spec.Events {
		event, err := Accept(&record.Spec.Events[i], record.ResourceVersion)
		if err != nil {
			slog.ErrorContext(ctx, "cannot decode an event of a record; the event and later events of the record have no deliveries", "namespace", q.namespace, "record", record.Name, "event", record.Spec.Events[i].ID, "error", err)
			return made, nil
		}
		for _, webhook := range event.Targets {
			e, isNew, err := q.createDelivery(ctx, hookID{record.Spec.SiteKey, webhook}, event)
			if isNew {
				created = append(created, e)
			}
			if err != nil {
				q.noteUnchecked(record.Name, created)
				return made, err
			}
			if e != nil {
				made = append(made, e)
			}
		}
		last = event.Sequence
	}
	q.mu.Lock()
	h := &heldRecord{record: record, last: last, removing: true}
	q.heldRecords[record.Name] = h
	q.mu.Unlock()
	from, err := q.removeEvents(ctx, record, last)
	if err != nil {
		return made, err
	}
	q.noteRemoved(record.Name, h, last)
	if from == record {
		return made, nil
	}
	var there map[string]bool
	if from != nil {
		there = eventIDs(from)
	}
	// The missing events were erased, or an earlier replica has relayed them.
	erased := notIn(there, created)
	if made, err = q.dropErased(ctx, made, erased); err != nil {
		q.noteUnchecked(record.Name, erased)
	}
	return made, err
}

// notIn returns the entries whose events are not in there.
func notIn(there map[string]bool, entries []*entry) (missing []*entry) {
	for _, e := range entries {
		if !there[e.object.Spec.Event] {
			missing = append(missing, e)
		}
	}
	return missing
}

// dropErased deletes the WebhookDeliveries of erased, and returns the rest of made. Errors are those of the API
// server.
func (q *queue) dropErased(ctx context.Context, made, erased []*entry) ([]*entry, error) {
	for _, e := range erased {
		if err := q.client.Delete(ctx, objects.Delivery, q.namespace, e.name, nil); err != nil {
			return made, objects.StoreError("remove delivery "+e.name, err)
		}
		made = slices.DeleteFunc(made, func(other *entry) bool { return other == e })
	}
	return made, nil
}

// createDelivery creates the WebhookDelivery of an event for a webhook, and returns its entry. created is false
// if the WebhookDelivery existed. createDelivery returns no entry if the delivery is in entries already, has
// succeeded or is a dead letter. If the request to create it fails, createDelivery returns its entry, with created
// true, in addition to the error: kube-apiserver may have created it.
func (q *queue) createDelivery(ctx context.Context, id hookID, event store.AcceptedEvent) (e *entry, created bool, err error) {
	h, err := q.hook(ctx, id)
	if err != nil {
		return nil, false, err
	}
	name := delivery.DeliveryID(event.ID, id.webhook)
	q.mu.Lock()
	known := q.entries[name] != nil || h.ring.find(name) != nil
	q.mu.Unlock()
	if known {
		return nil, false, nil
	}
	obj, err := newObject(q.namespace, newSpec(id.key, id.webhook, event, q.options.Clock.Now()))
	if err != nil {
		return nil, false, err
	}
	meta, err := q.client.Create(ctx, objects.Delivery, q.namespace, obj)
	if apierrors.IsAlreadyExists(err) {
		e, err := q.find(ctx, h, name)
		return e, false, err
	}
	if err != nil {
		return newEntry(h, obj), true, objects.StoreError("create delivery "+name, err)
	}
	obj.ObjectMeta = meta
	return newEntry(h, obj), true, nil
}

func newEntry(h *hook, obj *recordsv1.WebhookDelivery) *entry {
	return &entry{
		name: obj.Name, hook: h, subject: obj.Spec.Subject, sequence: obj.Spec.Sequence,
		next: objects.FromMicro(obj.Spec.NextAttempt), resourceVersion: obj.ResourceVersion, object: obj,
	}
}

// find returns the entry of an existing WebhookDelivery, or nil if it is not pending.
func (q *queue) find(ctx context.Context, h *hook, name string) (*entry, error) {
	var obj recordsv1.WebhookDelivery
	err := q.client.Get(ctx, objects.Delivery, q.namespace, name, &obj)
	if err != nil {
		return nil, objects.StoreError("read delivery "+name, err)
	}
	if obj.Spec.SiteKey != h.id.key {
		return nil, fmt.Errorf("create delivery %s/%s: the existing WebhookDelivery of this name has the siteKey of another site; remove it unless that site uses it", q.namespace, name)
	}
	if obj.Spec.Status != recordsv1.DeliveryPending {
		return nil, nil
	}
	return newEntry(h, &obj), nil
}

// errContended means that in all attempts to remove events, the Record changed after it was read.
var errContended = fmt.Errorf("the record changed during each of %d attempts", maxConflicts)

// removeEvents removes the events up to a sequence from a Record. It deletes the Record of a purged
// record that has no events left. It returns the state of the Record before the removal, which is record unless
// the Record has changed since, or nil if the Record does not exist.
func (q *queue) removeEvents(ctx context.Context, record *recordsv1.Record, last int64) (before *recordsv1.Record, err error) {
	for range maxConflicts {
		left := slices.DeleteFunc(Carry(record.Spec.Events, record.ResourceVersion), func(e recordsv1.PendingEvent) bool {
			sequence, err := sequence(e.ResourceVersion, e.Position)
			return err == nil && sequence <= last
		})
		err := q.write(ctx, record, left)
		switch {
		case err == nil:
			q.notePosted(record)
			return record, nil
		case apierrors.IsNotFound(err):
			q.notePosted(record)
			return nil, nil
		case !apierrors.IsConflict(err):
			return nil, objects.StoreError("remove events from record "+record.Name, err)
		}
		name := record.Name
		record = &recordsv1.Record{}
		if err := q.client.Get(ctx, objects.Records, q.namespace, name, record); apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, objects.StoreError("read record "+name, err)
		}
	}
	return nil, fmt.Errorf("remove events from record %s: %w", record.Name, errContended)
}

// notePosted counts the records of type Event whose events were relayed, and wakes trimLoop when
// there are many.
func (q *queue) notePosted(record *recordsv1.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if record.Spec.Type == EventType {
		q.posted++
	}
	if q.posted >= trimPosted {
		signal(q.trims)
	}
}

// write replaces the events of a Record by left. If left is empty and the record was purged, it deletes
// the RecordHistory and the Record. It fails with a conflict if the Record has changed since it was
// read. Errors are those of the API server.
func (q *queue) write(ctx context.Context, record *recordsv1.Record, left []recordsv1.PendingEvent) error {
	if len(left) == 0 && record.Spec.Purging {
		if !record.Spec.Placeholder {
			if err := q.client.Delete(ctx, objects.Histories, q.namespace, objects.HistoryName(record), nil); err != nil {
				return err
			}
		}
		return q.client.Delete(ctx, objects.Records, q.namespace, record.Name, &record.ObjectMeta)
	}
	spec := map[string]any{"events": nil, "hasEvents": nil}
	if len(left) > 0 {
		spec = map[string]any{"events": left}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": record.ResourceVersion, "managedFields": objects.NoManagedFields},
		"spec":     spec,
	})
	if err != nil {
		return fmt.Errorf("encode the events of record %s: %w", record.Name, err)
	}
	_, err = q.client.MergePatch(ctx, objects.Records, q.namespace, record.Name, patch)
	return err
}

// newer reports whether resourceVersion a is later than b (KEP-5504).
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
