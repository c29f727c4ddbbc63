package ahds

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// MaxSlotBatch is the maximum number of entries of a batch of slots. A batch with more entries is
	// refused with 400. A batch of this size ends within requestTimeout on either storage.
	MaxSlotBatch = 500
	// verbBatch stands for the verbs of the entries of a batch.
	verbBatch = "batch"
)

// batchVerbs are the RBAC verbs of the entries of a batch, by the name of the entry's action.
var batchVerbs = map[string]string{"create": "create", "replace": "update", "delete": "delete"}

var batchActions = []string{"create", "replace", "delete"}

// BatchFields are the fields of an entry of a batch, in addition to the id of the slot. The action
// of the entry determines which of the fields are allowed.
var BatchFields = schema.Fields{
	{Name: "action", Check: schema.OneOf(batchActions...), Required: true},
	{Name: "ifMatch", Check: schema.Text(1, maxTag), Default: "null"},
	{Name: "slot", Check: schema.Check{Errors: anObject, Schema: schema.JSON{"type": "object"}}, Default: "null"},
}

// maxTag is the maximum number of characters of ifMatch.
const maxTag = 1024

func anObject(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	return schema.AnyObject(len(value)).Errors(at, value)
}

// authorizeAny returns nil if the caller has the right to one of batchVerbs. Otherwise it returns
// the error for the verb of the first of batchActions. Errors: those of access.Authorizer.
func (h *handler) authorizeAny(r *request, op operation) error {
	var refused error
	for _, action := range batchActions {
		err := h.authorizeVerb(r, batchVerbs[action], op.resource)
		if err == nil {
			return nil
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// authorizeVerb checks the right of the caller to a verb on all records of a resource.
func (h *handler) authorizeVerb(r *request, verb, resource string) error {
	return h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access, access.Action{Verb: verb, Group: Group, Resource: resource})
}

// batchEntry is an entry of a batch.
type batchEntry struct {
	action, id, ifMatch string
	slot                schema.Object
	// key is the Idempotency-Key of the batch, made unique to the entry.
	key idempotencyKey
	// err is the error in the fields of the entry.
	err error
}

// batchResult is the answer to an entry.
type batchResult struct {
	status int
	record *store.Record
	err    error
}

// batchSlots serves POST …/availability-slot/batch. The entries are processed in order, each like a
// separate request, and each succeeds or fails on its own. If the body is not a valid batch, or the
// caller lacks the right to the action of any entry, the whole request is refused and no entry is
// processed.
func (h *handler) batchSlots(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	if len(r.Header.Values("If-Match")) > 0 {
		return fielderror.Errors{{In: fielderror.Header, At: "If-Match", Code: fielderror.CodeInvalidHeader, Detail: "a batch has several records; send the ETag of each as ifMatch of its entry"}}
	}
	if _, _, err := web.ParseContentType(r.Header, typeJSON); err != nil {
		return err
	}
	text, err := r.readBody(w)
	if err != nil {
		return err
	}
	entries, err := readBatch(text, MaxSlotBatch, key)
	if err != nil {
		return err
	}
	for _, action := range batchActions {
		if slices.ContainsFunc(entries, func(e batchEntry) bool { return e.action == action }) {
			if err := h.authorizeVerb(r, batchVerbs[action], slots.resource); err != nil {
				return err
			}
		}
	}
	readable, err := h.canRead(r, Group, slots.resource, "")
	if err != nil {
		return err
	}
	items := []byte(`{"data":[`)
	for i, e := range entries {
		if i > 0 {
			items = append(items, ',')
		}
		if items, err = h.appendResult(items, r, i, h.runEntry(r, e), readable); err != nil {
			return err
		}
	}
	return r.respond(w, http.StatusOK, typeJSON, append(items, `]}`...))
}

// readBatch parses the body of a batch of 1 to maxEntries entries. The errors in the fields of an
// entry are stored in the entry. Errors: fielderror.Errors if the body is not an array of 1 to
// maxEntries objects.
func readBatch(text []byte, maxEntries int, key idempotencyKey) ([]batchEntry, error) {
	if !schema.IsList(text) {
		return nil, fielderror.Errors{{Code: fielderror.CodeWrongType, Detail: "the body is not an array; send a JSON array of 1 to " + strconv.Itoa(maxEntries) + " entries"}}
	}
	objects, err := schema.ParseList(text, maxEntries)
	if err != nil {
		return nil, err
	}
	entries := make([]batchEntry, len(objects))
	for i, object := range objects {
		entries[i] = readBatchEntry(object)
		if key.key != "" {
			entries[i].key = key.ofEntry(i, object)
		}
	}
	return entries, nil
}

// ofEntry returns the key of the entry at index at of a batch whose key is i. The hash of its
// request covers the members of the entry.
func (i idempotencyKey) ofEntry(at int, entry schema.Object) idempotencyKey {
	var parts [][]byte
	for _, member := range entry {
		parts = append(parts, []byte(member.Name), member.Value)
	}
	return idempotencyKey{key: digest([]byte(i.key), []byte(strconv.Itoa(at))), request: digest(parts...)}
}

func readBatchEntry(object schema.Object) batchEntry {
	content, id, err := BatchFields.Create(object, schema.Identity{Name: slots.idField})
	e := batchEntry{action: content.Text("action"), id: id, ifMatch: content.Text("ifMatch"), err: err}
	if err != nil {
		return e
	}
	var errs fielderror.Errors
	wrong := func(name, code, detail string) {
		errs = append(errs, fielderror.Error{At: string(jsontext.Pointer("").AppendToken(name)), Code: code, Detail: detail})
	}
	given := content["slot"].Kind() == jsontext.KindBeginObject
	if given {
		if e.slot, err = schema.Members(content["slot"]); err != nil {
			e.err = err
			return e
		}
	}
	creates := e.action == "create"
	if given == (e.action == "delete") {
		if given {
			wrong("slot", fielderror.CodeInvalidValue, "slot is not allowed for a delete; omit slot")
		} else {
			wrong("slot", fielderror.CodeMissing, "slot is missing; a "+e.action+" needs the fields of the slot")
		}
	}
	if e.id == "" && !creates {
		wrong(slots.idField, fielderror.CodeMissing, slots.idField+" is missing; a "+e.action+" needs the id of the slot")
	}
	if e.id != "" && creates {
		wrong(slots.idField, fielderror.CodeInvalidValue, slots.idField+" is not allowed for a create; to choose the id, set "+slots.idField+" in slot")
	}
	if e.ifMatch != "" && creates {
		wrong("ifMatch", fielderror.CodeInvalidValue, "ifMatch is not allowed for a create; omit ifMatch")
	}
	e.err = errs.Err()
	return e
}

// runEntry processes an entry of a batch.
func (h *handler) runEntry(r *request, e batchEntry) batchResult {
	if e.err != nil {
		return batchResult{err: e.err}
	}
	own := *r.Request
	own.Header = http.Header{}
	if e.ifMatch != "" {
		own.Header.Set("If-Match", e.ifMatch)
	}
	entry := &request{Request: &own, site: r.site, caller: r.caller, id: e.id}
	switch e.action {
	case "create":
		rec, outcome, err := h.createFrom(entry, slots, e.slot, e.key)
		return batchResult{writeStatuses[outcome], &rec, inSlot(err)}
	case "replace":
		rec, err := h.replaceWith(entry, slots, e.slot, e.key)
		return batchResult{http.StatusOK, &rec, inSlot(err)}
	default:
		return batchResult{http.StatusNoContent, nil, h.removeRecord(entry, slots)}
	}
}

// inSlot converts errors in the fields of a slot to errors of its entry.
func inSlot(err error) error {
	if errs := (fielderror.Errors{}); errors.As(err, &errs) {
		return errs.Below("/slot")
	}
	return err
}

// inEntry converts errors of an entry to errors of the batch. An error in the header If-Match
// becomes an error in the field ifMatch, from which runEntry made the header.
func inEntry(errs fielderror.Errors, i int) fielderror.Errors {
	for n, each := range errs {
		if each.In == fielderror.Header {
			errs[n].In, errs[n].At = fielderror.Body, "/ifMatch"
		}
	}
	return errs.Below("/" + strconv.Itoa(i))
}

// appendResult appends the answer to the entry at index i: its status, the ETag, and the slot or a
// problem. If readable is not set, a slot that the entry did not create is shown by its id and ETag only.
// Errors: those of rendering the slot.
func (h *handler) appendResult(to []byte, r *request, i int, result batchResult, readable bool) ([]byte, error) {
	w := schema.NewWriter(to)
	if result.err != nil {
		p := problemOf(result.err)
		h.logFailure(r, p, result.err)
		p.fieldErrors = inEntry(p.fieldErrors, i)
		w.Raw("status", jsontext.Value(strconv.Itoa(p.status)))
		if tag := p.header["ETag"]; tag != "" {
			w.String("etag", tag)
		}
		w.Raw("problem", p.encode(h.ErrorPages, r.instance()))
		return w.Done(), nil
	}
	w.Raw("status", jsontext.Value(strconv.Itoa(result.status)))
	switch {
	case result.record == nil:
	case !readable && result.status != http.StatusCreated:
		w.String("etag", etag(*result.record).String())
		w.String(slots.idField, result.record.Key.ID)
	default:
		body, err := h.render(r, slots, *result.record)
		if err != nil {
			return nil, err
		}
		w.String("etag", etag(*result.record).String())
		w.Raw("slot", body)
	}
	return w.Done(), nil
}
