package deliveries

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// persistInterval is the time between two searches for entries that have been held for
// Options.HoldTime.
const persistInterval = 500 * time.Millisecond

// heldRecord is a Record with events whose deliveries are sent before they have WebhookDeliveries, so
// that a delivery that succeeds at once costs no object. The events stay in the Record until each
// delivery is in the log of its webhook or has a WebhookDelivery. If the process dies earlier, the
// next process finds the events in the Record. The mu of the queue guards a heldRecord.
type heldRecord struct {
	record *recordsv1.Record
	// last is the greatest sequence of the events that have entries.
	last int64
	// open is the number of entries that are not in a log and have no WebhookDelivery.
	open int
	// removing reports whether the events are being removed from the Record. removed reports whether the
	// events up to last were removed. reportedEmpty reports whether the watch has reported that the Record has no
	// events.
	removing, removed, reportedEmpty bool
}

// claim is what an entry without a WebhookDelivery needs: the events of its Record.
type claim struct {
	held *heldRecord
	// persistAt is when the entry gets a WebhookDelivery if it has not succeeded.
	persistAt time.Time
}

// hold makes entries for the new events of a Record, without WebhookDeliveries. If it returns an error,
// it has made no entries. Errors are those of the API server.
func (q *queue) hold(ctx context.Context, record *recordsv1.Record) (made []*entry, err error) {
	q.mu.Lock()
	last := int64(0)
	if h := q.heldRecords[record.Name]; h != nil {
		last = h.last
	}
	q.mu.Unlock()
	events := q.eventsAfter(ctx, record, last)
	if len(events) == 0 {
		return nil, nil
	}
	hooks := map[string]*hook{}
	for _, event := range events {
		for _, webhook := range event.Targets {
			if hooks[webhook], err = q.hook(ctx, hookID{record.Spec.SiteKey, webhook}); err != nil {
				return nil, err
			}
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.heldRecords[record.Name]
	if h == nil {
		h = &heldRecord{}
		q.heldRecords[record.Name] = h
	}
	h.record, h.last, h.removed, h.reportedEmpty = record, events[len(events)-1].Sequence, false, false
	h.open++ // until all entries are made
	for _, event := range events {
		for _, webhook := range event.Targets {
			if e := q.newHeld(hooks[webhook], event, h); e != nil {
				made = append(made, e)
			}
		}
	}
	q.release(h)
	return made, nil
}

// eventsAfter returns the events of a Record after a sequence, up to the first invalid one.
func (q *queue) eventsAfter(ctx context.Context, record *recordsv1.Record, last int64) (events []store.AcceptedEvent) {
	for i := range record.Spec.Events {
		if sequence, err := Sequence(&record.Spec.Events[i], record.ResourceVersion); err == nil && sequence <= last {
			continue
		}
		event, err := Accept(&record.Spec.Events[i], record.ResourceVersion)
		if err != nil {
			slog.ErrorContext(ctx, "cannot decode an event of a record; the event and later events of the record have no deliveries", "namespace", q.namespace, "record", record.Name, "event", record.Spec.Events[i].ID, "error", err)
			break
		}
		events = append(events, event)
	}
	return events
}

// newHeld returns the entry of an event for a webhook, or nil if the delivery is known already. The
// caller holds mu.
func (q *queue) newHeld(to *hook, event store.AcceptedEvent, in *heldRecord) *entry {
	spec := newSpec(to.id.key, to.id.webhook, event, q.options.Clock.Now())
	spec.Envelope = nil // create adds it
	obj := bareObject(q.namespace, spec)
	if q.entries[obj.Name] != nil || to.ring.find(obj.Name) != nil {
		return nil
	}
	e := newEntry(to, obj)
	e.first, e.envelope, e.claim = obj, event.Envelope, &claim{in, time.Now().Add(q.options.HoldTime)}
	if !to.state.FailingSince.IsZero() {
		e.claim.persistAt = time.Time{} // the delivery will probably fail, or wait for the breaker
	}
	in.open++
	return e
}

// release notes that an entry does not need its Record any more. After the last entry, it starts
// removeHeldEvents, unless the events are being removed from the Record or were removed. The caller holds mu.
func (q *queue) release(h *heldRecord) {
	if h.open--; h.open == 0 && !h.removed && !h.removing {
		h.removing = true
		q.attempts.Go(func() { q.removeHeldEvents(q.late, h) })
	}
}

// removeHeldEvents removes the events of a heldRecord from its Record. It retries until ctx ends.
func (q *queue) removeHeldEvents(ctx context.Context, h *heldRecord) {
	for {
		q.mu.Lock()
		record, last := h.record, h.last
		q.mu.Unlock()
		q.removals <- struct{}{}
		_, err := q.removeEvents(ctx, record, last)
		<-q.removals
		switch {
		case err == nil && q.noteRemoved(record.Name, h, last), ctx.Err() != nil:
			return
		case err != nil:
			slog.WarnContext(ctx, "cannot remove events from a record; the server will retry", "namespace", q.namespace, "record", record.Name, "error", err)
			q.sleep(ctx, retryDelay)
		}
	}
}

// noteRemoved notes that the events up to a sequence were removed from the Record of a heldRecord. It reports
// whether removeHeldEvents must end. removeHeldEvents continues only if there are later events and all their
// entries were released. If entries are open, release starts removeHeldEvents again later.
func (q *queue) noteRemoved(name string, h *heldRecord, last int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	h.removed = h.open == 0 && h.last == last
	h.removing = h.open == 0 && !h.removed
	q.forgetEmpty(name, h)
	return !h.removing
}

// persistOverdue creates the WebhookDeliveries of deliveries that have been held for Options.HoldTime, until ctx
// ends. It makes one request at a time, because most of these deliveries are to failing webhooks: more
// requests at once would delay the deliveries to other webhooks.
func (q *queue) persistOverdue(ctx context.Context) {
	ticker := time.NewTicker(persistInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, entries := range q.overdue() {
			if err := q.persist(ctx, entries); err != nil {
				if ctx.Err() == nil {
					slog.WarnContext(ctx, "cannot create deliveries of events; the server will retry", "namespace", q.namespace, "error", err)
				}
				break
			}
		}
	}
}

// overdue returns the entries that must get a WebhookDelivery now, those of a Record together. Sites
// for which Options.Open returns false are left out: they may have been erased.
func (q *queue) overdue() [][]*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found [][]*entry
	places := map[*heldRecord]int{}
	for _, e := range q.order {
		if e.claim == nil || e.done || time.Now().Before(e.claim.persistAt) {
			continue
		}
		if _, open := q.options.Open(q.namespace, e.hook.id.key); !open {
			continue
		}
		place, known := places[e.claim.held]
		if !known {
			place = len(found)
			places[e.claim.held] = place
			found = append(found, nil)
		}
		found[place] = append(found[place], e)
	}
	return found
}

// persist creates the WebhookDeliveries of entries of one Record in their states before the first
// attempt, which may be in progress.
func (q *queue) persist(ctx context.Context, entries []*entry) error {
	var created []*entry
	for _, e := range entries {
		e.creation.Lock()
		defer e.creation.Unlock()
		q.mu.Lock()
		settled := e.claim == nil || e.done
		q.mu.Unlock()
		if settled {
			continue
		}
		exists, err := q.ensureObject(ctx, e, e.first.DeepCopy())
		if err != nil {
			return err
		}
		if exists {
			created = append(created, e)
		}
	}
	return q.confirm(ctx, created)
}

// create creates the WebhookDelivery of an entry, and releases the Record of its event. The caller
// holds e.creation.
func (q *queue) create(ctx context.Context, e *entry, obj *recordsv1.WebhookDelivery) error {
	exists, err := q.ensureObject(ctx, e, obj)
	if err != nil || !exists {
		return err
	}
	return q.confirm(ctx, []*entry{e})
}

// ensureObject creates the WebhookDelivery of an entry, unless e.meta is set. If an earlier replica has
// created the WebhookDelivery, its state is unknown: ensureObject then ends the claim of the entry and
// returns false. The caller holds e.creation.
func (q *queue) ensureObject(ctx context.Context, e *entry, obj *recordsv1.WebhookDelivery) (exists bool, err error) {
	if e.meta != nil {
		return true, nil
	}
	obj.Spec.Envelope = objects.Compress(e.envelope, nil)
	if obj.Annotations, err = annotate(&obj.Spec); err != nil {
		return false, err
	}
	meta, err := q.client.Create(ctx, objects.Delivery, q.namespace, obj)
	if apierrors.IsAlreadyExists(err) {
		// A replica that had this shard before created the object. The next attempt reads it.
		q.unclaim(e, "")
		return false, nil
	}
	if err != nil {
		return false, objects.StoreError("create delivery "+e.name, err)
	}
	e.meta = &meta
	return true, nil
}

// confirm releases the Record of entries that have WebhookDeliveries. An event that was erased from
// the Record in the meantime loses its WebhookDelivery and its entry: an erasure removes an event from
// its Record first, and then WebhookDeliveries. The caller holds creation of all entries, which are of
// one Record.
func (q *queue) confirm(ctx context.Context, entries []*entry) error {
	if len(entries) == 0 {
		return nil
	}
	q.mu.Lock()
	name := entries[0].claim.held.record.Name
	q.mu.Unlock()
	inRecord, err := q.eventsOf(ctx, name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if inRecord[e.first.Spec.Event] {
			q.unclaim(e, e.meta.ResourceVersion)
			continue
		}
		if err := q.client.Delete(ctx, objects.Delivery, q.namespace, e.name, nil); err != nil {
			return objects.StoreError("remove delivery "+e.name, err)
		}
		q.mu.Lock()
		q.remove(e)
		q.mu.Unlock()
		q.unclaim(e, "")
	}
	return nil
}

// eventsOf returns the ids of the events that are still in a Record. It returns nil if the Record does not exist.
func (q *queue) eventsOf(ctx context.Context, name string) (map[string]bool, error) {
	var record recordsv1.Record
	err := q.client.Get(ctx, objects.Records, q.namespace, name, &record)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, objects.StoreError("read record "+name, err)
	}
	return eventIDs(&record), nil
}

// eventIDs returns the ids of the events in a Record.
func eventIDs(record *recordsv1.Record) map[string]bool {
	ids := map[string]bool{}
	for i := range record.Spec.Events {
		ids[record.Spec.Events[i].ID] = true
	}
	return ids
}

// unclaim ends the claim of an entry, which no longer needs its Record. resourceVersion is that of the
// WebhookDelivery. If resourceVersion is empty, the next attempt reads the WebhookDelivery.
func (q *queue) unclaim(e *entry, resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.resourceVersion = resourceVersion; resourceVersion == "" {
		e.object, e.meta = nil, nil
	}
	if c := e.claim; c != nil {
		e.claim = nil
		q.release(c.held)
	}
}
