package ahds

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// kind describes one kind of record to the handlers.
type kind struct {
	// recordType is the type in the store, segment a part of the path, resource the name in RBAC.
	recordType, segment, resource string
	idField                       string
	fields                        schema.Fields
	lists                         list.Options[store.Condition]
	sorts                         map[string]store.Sort
	// where joins the conditions of a list. If nil, all of them must match.
	where func([]store.Condition) store.Condition
	// partial lists the sort fields that some records lack. Such records come last in both
	// directions.
	partial []string
	// values returns the searchable values of a record.
	values func(schema.Content) []store.IndexValue
	// check returns the errors of combinations of fields. If nil, there are none.
	check func(schema.Content) fielderror.Errors
	// change applies a client's write to a record. If nil, the write replaces the content.
	change func(id string, before stored, w write, now time.Time) (stored, error)
	// claims returns the claims of a record, without those of idempotency keys. If nil, the kind has
	// none.
	claims func(s stored, now time.Time) []store.Claim
	// keepsDeletions is set if a delete leaves a tombstone, which a list of changes shows. Otherwise it
	// removes the record with its history.
	keepsDeletions bool
	// serve writes the fields that the service sets, in addition to the times. If nil, there are none.
	serve func(h *handler, r *request, rec store.Record, s stored, to *schema.Writer)
}

// write is a client's change of a record.
type write struct {
	// sent is the request's body, content the content of the record after the write.
	sent    schema.Object
	content schema.Content
	// seen is set if the client creates the record, or replaces it and knows its current version. A
	// PATCH never sets it, even with If-Match.
	seen bool
	by   access.Caller
}

var slots = &kind{
	recordType: slot.Type, segment: "availability-slot", resource: "availabilityslots", idField: slot.IDField,
	fields: slot.Fields, lists: slot.Lists, sorts: slot.Sorts, where: slot.Where, values: slot.Values,
	check: slot.Check, change: changeSlot, claims: slotClaims, keepsDeletions: true, serve: serveHold,
}

var eventGroups = &kind{
	recordType: eventgroup.Type, segment: "eventgroup", resource: "eventgroups", idField: eventgroup.IDField,
	fields: eventgroup.Fields, lists: eventgroup.Lists, sorts: eventgroup.Sorts, partial: eventgroup.Partial, values: eventgroup.Values,
}

// kinds returns all kinds of records.
func kinds() []*kind { return []*kind{slots, eventGroups, feeds} }

// key returns the key of the record with an id.
func (k *kind) key(id string) store.Key { return store.Key{Type: k.recordType, ID: id} }

// render returns the JSON of a version of a record. Each of more writes further fields at the end.
func (h *handler) render(r *request, k *kind, rec store.Record, more ...func(*schema.Writer)) ([]byte, error) {
	s, err := k.decode(rec.Body.JSON)
	if err != nil {
		return nil, err
	}
	w := schema.NewWriter(nil)
	w.String(k.idField, rec.Key.ID)
	k.fields.Append(w, s.content)
	if k.serve != nil {
		k.serve(h, r, rec, s, w)
	}
	w.String("createdAt", schema.Stamp(rec.Created))
	w.String("updatedAt", schema.Stamp(rec.Updated))
	for _, add := range more {
		add(w)
	}
	return w.Done(), nil
}

// applyWrite returns the record after a client's write.
func (k *kind) applyWrite(id string, before stored, w write, now time.Time) (stored, error) {
	if k.change != nil {
		return k.change(id, before, w, now)
	}
	return stored{content: w.content, service: before.service}, nil
}
