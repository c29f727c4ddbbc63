package ahds

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxGenerated is the maximum number of slots that one request generates. A request for more is
// refused with 400. A request for this many ends within requestTimeout on either storage.
const maxGenerated = 500

// generateSlots serves POST …/availability-slot/generate. It creates those slots of a schedule that
// do not exist, and leaves existing slots unchanged. The id of a slot is computed from its time,
// resource, location and service. A repeated request therefore creates only slots that have been
// deleted in the meantime. Each slot is written on its own: after an error, the slots before it
// exist.
func (h *handler) generateSlots(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	if err := r.refuseKey("generate does not support this header; remove the header. A repeated request creates only slots that do not exist"); err != nil {
		return err
	}
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, _, err := slot.GenerateFields.Create(sent, schema.Identity{})
	if err != nil {
		return err
	}
	schedule, err := slot.ReadSchedule(content, r.site.Zone)
	if err != nil {
		return err
	}
	made := schedule.Slots(maxGenerated)
	if len(made) > maxGenerated {
		return fielderror.Errors{{At: "/to", Code: fielderror.CodeOutOfRange, Detail: "the opening hours have more than " + strconv.Itoa(maxGenerated) + " slots until this date; send an earlier date, and the days after it in another request"}}
	}
	audit.From(r.Context()).Statuses(nil) // there is a Write for each slot, but one entry for all
	created := 0
	items := []byte{'['}
	for i, each := range made {
		id := r.generatedID(each)
		isNew, err := ensureSlot(r.Context(), r.site.Store, id, each)
		if err != nil {
			return err
		}
		if isNew {
			created++
		}
		if i > 0 {
			items = append(items, ',')
		}
		item := schema.NewWriter(items)
		item.String(slots.idField, id)
		item.Raw("startAt", each["startAt"])
		item.Raw("endAt", each["endAt"])
		item.Raw("created", jsontext.Value(strconv.FormatBool(isNew)))
		items = item.Done()
	}
	counts := schema.NewWriter(nil)
	counts.Raw("created", jsontext.Value(strconv.Itoa(created)))
	counts.Raw("existing", jsontext.Value(strconv.Itoa(len(made)-created)))
	body := schema.NewWriter(nil)
	body.Raw("data", append(items, ']'))
	body.Raw("meta", counts.Done())
	return r.respond(w, http.StatusOK, typeJSON, body.Done())
}

// generatedID returns the id of a generated slot.
func (r *request) generatedID(content schema.Content) string {
	generated := slot.Read(content)
	name := "https://paddock.health/site/" + r.site.ID + "/" + slots.segment + "#" + digest(
		[]byte(generated.Resource), []byte(generated.Location),
		[]byte(schema.Stamp(generated.Start)), []byte(schema.Stamp(generated.End)),
		[]byte(content.Member("serviceType", "system")), []byte(content.Member("serviceType", "code")),
	)
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String()
}

// ensureSlot creates a free slot unless there is a slot with the id. It reports whether it created
// the slot.
func ensureSlot(ctx context.Context, records store.Store, id string, content schema.Content) (created bool, err error) {
	made := stored{content: content}
	made.service.Fingerprint = slots.fingerprint(content)
	op := store.Op{Kind: store.Put, Key: slots.key(id), Method: store.MethodPost, If: store.Precondition{Absent: true}}
	if op.Body, err = slots.encode(made); err != nil {
		return false, err
	}
	_, err = records.Write(ctx, []store.Op{op})
	if store.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}
