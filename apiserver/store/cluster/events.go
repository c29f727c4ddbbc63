package cluster

import (
	"fmt"
	"slices"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// addEvents sets the events of the Record after a write: those that it has already, and those that
// the operation makes. current is the superseded state of the Record, or nil. remains is the Record
// of a purged record whose events were not relayed, or nil. With Op.Erase, the events that the Record
// has already are dropped. Errors: *store.LimitError; another error if the operation has more than
// deliveries.MaxPerWrite events.
func (w *write) addEvents(p *plan, current, remains *recordsv1.Record) error {
	p.carried, p.fresh = nil, nil
	switch {
	case p.Action == store.ActionNone:
		return nil
	case w.op.Erase: // Store.eraseEvents has removed earlier events about the record; later ones are dropped here
	case current != nil:
		p.carried = deliveries.Carry(current.Spec.Events, current.ResourceVersion)
	case remains != nil:
		p.carried = deliveries.Carry(remains.Spec.Events, remains.ResourceVersion)
	}
	for _, event := range p.Events(w.op) {
		p.fresh = append(p.fresh, deliveries.Pend(event, len(p.fresh), p.After.Version, p.After.Updated))
	}
	if len(p.fresh) > deliveries.MaxPerWrite {
		return fmt.Errorf("write record %s: the operation has %d events; the maximum is %d", w.name, len(p.fresh), deliveries.MaxPerWrite)
	}
	p.next.Events = slices.Concat(p.carried, p.fresh)
	return w.site.checkEventLimits(p)
}

func setEvents(spec *recordsv1.RecordSpec, events []recordsv1.PendingEvent) {
	spec.Events, spec.HasEvents = events, len(events) > 0
}

// maxKeptFactor is the ratio of the maximum number of pending and dead-lettered deliveries of a
// site to Limits.MaxPending. At that maximum, writes with events fail, except deletes and purges.
const maxKeptFactor = 10

// checkEventLimits returns a *store.LimitError if the events would exceed deliveries.MaxEventBytes,
// or if the site would have too many deliveries. The limits on the number of deliveries do not apply to
// deletes and purges, whose number is limited by that of the records. Writes of other replicas are
// counted with a delay of at most a second.
func (s *Store) checkEventLimits(p *plan) error {
	if len(p.fresh) == 0 {
		return nil
	}
	own, more := deliveries.Size(p.fresh)
	if own > deliveries.MaxEventBytes {
		return &store.LimitError{Scope: store.LimitRecord, What: "bytes of events", Max: deliveries.MaxEventBytes}
	}
	if all, _ := deliveries.Size(p.next.Events); all > deliveries.MaxEventBytes {
		return &store.LimitError{Scope: store.LimitRecord, What: store.PendingEventBytes, Max: deliveries.MaxEventBytes}
	}
	if p.Action == store.ActionPurge || p.next.Deleted { // the records of a site at its limits can be removed
		return nil
	}
	waiting := s.index.usage().pending + more
	pending, kept := s.engine.backlog.Count(s.namespace, s.key)
	if waiting+pending > s.limits.MaxPending {
		return &store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries, Max: s.limits.MaxPending}
	}
	if most := s.limits.MaxPending * maxKeptFactor; waiting+pending+kept > most {
		return &store.LimitError{Scope: store.LimitSite, What: store.KeptDeliveries, Max: most}
	}
	return nil
}

// Deliveries returns the log of the webhook deliveries of the site.
func (s *Store) Deliveries() delivery.Log {
	return deliveries.NewLog(s.engine.client, s.namespace, s.key, s.engine.clock)
}

// Archive returns the archive of the webhook deliveries of the site.
func (s *Store) Archive() delivery.Archive {
	return deliveries.NewArchive(s.engine.client, s.namespace, s.key)
}

// Tail returns a reader that follows the webhook deliveries of the site.
func (s *Store) Tail() delivery.Tail {
	return deliveries.NewTail(s.engine.client, s.namespace, s.key, s.engine.clock, s.eventWatermarks)
}

// eventWatermarks implements deliveries.Watermarks. The index has the state of each Record at the
// resourceVersion that the watch has reached, or a later state. So an event up to that
// resourceVersion that is not in the index was relayed.
func (s *Store) eventWatermarks() (newest, relayed int64) {
	seen := s.engine.seen.Load()
	if seen == 0 {
		return 0, 0
	}
	newest = seen*deliveries.MaxPerWrite + deliveries.MaxPerWrite - 1
	if oldest, waits := s.index.oldestEvent(); waits {
		return newest, min(newest, oldest-1)
	}
	return newest, newest
}

// oldestEvent returns the least sequence of the events in Records of the site. waits is false if
// there are none.
func (x *index) oldestEvent() (oldest int64, waits bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, e := range x.withEvents {
		for i := range e.obj.Spec.Events {
			sequence, err := deliveries.Sequence(&e.obj.Spec.Events[i], e.obj.ResourceVersion)
			if err == nil && (!waits || sequence < oldest) { // An event without a valid sequence is never relayed, so it must not hold back later events.
				oldest, waits = sequence, true
			}
		}
	}
	return oldest, waits
}
