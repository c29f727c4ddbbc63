package ahds

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// kind is what the handlers of records need to know of one kind of them.
type kind struct {
	// recordType is the type in the store, segment the path's, resource that of RBAC.
	recordType, segment, resource string
	idField                       string
	fields                        document.Fields
	lists                         list.Options[store.Condition]
	sorts                         map[string]store.Sort
	// where joins the conditions of a list; nil: all must hold.
	where func([]store.Condition) store.Condition
	// partial are the fields to sort by that some records have not: these come last in
	// both directions.
	partial []string
	entries func(document.Content) []store.Entry
	// check finds what fields have wrong together; nil: nothing.
	check func(document.Content) fault.Faults
	// change is what a client's write makes of a record; nil: its content.
	change func(id string, before stored, w write, now time.Time) (stored, error)
	// claims are all that a record holds; nil: records of the kind hold none.
	claims func(s stored, now time.Time) []store.Claim
	// serve adds the fields that the service sets, beside the times; nil: there are none.
	serve func(h *handler, r *request, rec store.Record, s stored, to *document.Writer)
}

// write is how a client changes a record.
type write struct {
	// sent is the request's body, content what it comes to.
	sent    document.Object
	content document.Content
	// seen tells that the client has seen the record as it is now.
	seen bool
}

var slots = &kind{
	recordType: slot.Type, segment: "availability-slot", resource: "availabilityslots", idField: slot.IDField,
	fields: slot.Fields, lists: slot.Lists, sorts: slot.Sorts, where: slot.Where, entries: slot.Entries,
	check: slot.Check, change: changeSlot, claims: slotClaims, serve: serveHold,
}

var eventGroups = &kind{
	recordType: eventgroup.Type, segment: "eventgroup", resource: "eventgroups", idField: eventgroup.IDField,
	fields: eventgroup.Fields, lists: eventgroup.Lists, sorts: eventgroup.Sorts, partial: eventgroup.Partial, entries: eventgroup.Entries,
}

// kinds are all kinds of records.
func kinds() []*kind { return []*kind{slots, eventGroups, feeds} }

// key names the record of the path.
func (k *kind) key(id string) store.Key { return store.Key{Type: k.recordType, ID: id} }

// render writes a version of a record as clients see it.
func (h *handler) render(r *request, k *kind, rec store.Record, more ...func(*document.Writer)) ([]byte, error) {
	s, err := k.decode(rec.Body.JSON)
	if err != nil {
		return nil, err
	}
	w := document.NewWriter(nil)
	w.String(k.idField, rec.Key.ID)
	k.fields.Append(w, s.content)
	if k.serve != nil {
		k.serve(h, r, rec, s, w)
	}
	w.String("createdAt", document.Stamp(rec.Created))
	w.String("updatedAt", document.Stamp(rec.Updated))
	for _, add := range more {
		add(w)
	}
	return w.Done(), nil
}

// settle is what a client's write makes of a record.
func (k *kind) settle(id string, before stored, w write, now time.Time) (stored, error) {
	if k.change != nil {
		return k.change(id, before, w, now)
	}
	return stored{content: w.content, kept: before.kept}, nil
}
