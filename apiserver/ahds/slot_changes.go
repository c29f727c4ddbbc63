package ahds

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
)

const (
	// DefaultChanges is the default of pageSize, in changes per page, of a list of changes.
	DefaultChanges = 100
	// MaxChanges is the maximum of pageSize of a list of changes. A larger pageSize is refused with
	// 400.
	MaxChanges = 500
	// overlap is how far a list reaches back before the time at which the client read its previous
	// list. The time of a write is set before the write becomes visible: up to requestTimeout
	// earlier on the API server that writes. Ten more seconds allow for the delay until other
	// servers see the write, and for differences between clocks. A list misses a change that
	// becomes visible later than overlap after its time.
	overlap = requestTimeout + 10*time.Second
)

// endOfTime is later than every write, so the version that is current at endOfTime is the newest
// version of a record.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// CursorScope is the scope of a cursor of a list of changes. A cursor is valid only in the scope in
// which it was sealed.
type CursorScope struct {
	// SiteID is the site, Collection the list, and Caller the name of the client that received the
	// cursor. View is store.Restricted.Digest of the types in the list.
	SiteID, Collection, Caller, View string
}

// Cursors seals the cursors of lists of changes, so that clients can neither read nor change them.
type Cursors interface {
	Seal(of CursorScope, at []byte) string
	// Open returns the text that was sealed in the token. The error of an invalid token is a message
	// for the client, which follows the words "the cursor".
	Open(of CursorScope, token string) ([]byte, error)
}

// changeCursor is a position in the changes of a site. Times are in milliseconds since 1970.
type changeCursor struct {
	// Since is the time from which the list shows changes.
	Since int64 `json:"s"`
	// Newest is the time of the newest change that the client has received or will receive with this
	// list. It is 0 if there is none.
	Newest int64 `json:"n"`
	// Read is the time at which the client requested the first page of the list.
	Read int64 `json:"o"`
	// After is the position within the list. It is nil at its start.
	After store.Position `json:"a,omitempty"`
}

// next returns the cursor of the list that follows this list. The next list begins after Newest, or
// at overlap before Read if that is earlier, because every change before that time was visible when
// this list was read. A client therefore receives a change again only in lists that follow a list
// that it read less than overlap after the change.
func (c changeCursor) next() changeCursor {
	since := min(c.Newest+1, c.Read-overlap.Milliseconds())
	// The client has the changes from before Since, or does not want them.
	return changeCursor{Since: max(since, c.Since), Newest: c.Newest}
}

// slotChanges serves GET …/availability-slot/changes: the newest version of each slot that was
// written or deleted since a cursor or a time, newest first. A change that happens while a client
// reads the pages of a list is in that list, or in the list that begins with the cursor of its last
// page.
func (h *handler) slotChanges(w http.ResponseWriter, r *request) error {
	r.auditParameters()
	count, err := r.changesQuery()
	if err != nil {
		return err
	}
	view, err := r.site.Store.Digest([]string{slots.recordType})
	if err != nil {
		return err
	}
	scope := CursorScope{SiteID: r.site.ID, Collection: slots.segment + "/changes", Caller: r.caller.Name, View: view}
	at, err := h.changesSince(r, scope)
	if err != nil {
		return err
	}
	if at.After == nil {
		at.Read = h.Now().UnixMilli()
	}
	page, err := r.site.Store.History(r.Context(), store.HistoryQuery{
		Key: store.Key{Type: slots.recordType}, Deletions: true, Since: time.UnixMilli(at.Since),
		Current: []store.TimeRange{{From: endOfTime}}, Count: count, After: at.After,
	})
	if errors.Is(err, store.ErrBadPosition) {
		return invalidCursor("cannot be used any more, for example because the site was moved to another storage; send the time of your last poll, less a minute")
	}
	if err != nil {
		return err
	}
	if at.After == nil && len(page.Records) > 0 { // the first one is the newest
		at.Newest = max(at.Newest, page.Records[0].Updated.UnixMilli())
	}
	at.After = page.Next
	payload, err := json.Marshal(at)
	if err != nil {
		return err
	}
	body, err := h.renderChanges(r, page, h.Cursors.Seal(scope, payload))
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, typeJSON, body)
}

// changesQuery checks the parameters of a list of changes and returns its page size.
func (r *request) changesQuery() (count int, err error) {
	known := []string{"since", "pageSize"}
	count = DefaultChanges
	var errs fielderror.Errors
	wrong := func(name, code, detail string) {
		errs = append(errs, fielderror.Error{In: fielderror.Parameter, At: name, Code: code, Detail: detail})
	}
	for name, values := range r.query {
		switch {
		case !slices.Contains(known, name):
			wrong(name, fielderror.CodeUnknownParameter, fielderror.Quote(name)+" is not a parameter of this list"+suggest.Among(name, known, "known names are"))
		case len(values) > 1:
			wrong(name, fielderror.CodeRepeated, "the parameter is repeated; send it once")
		case name == "pageSize":
			var ok bool
			if count, ok = list.ParsePageSize(values[0], MaxChanges); !ok {
				wrong(name, fielderror.CodeOutOfRange, fielderror.Quote(values[0])+" is not a page size; send a whole number from 1 to "+strconv.Itoa(MaxChanges))
			}
		}
	}
	slices.SortFunc(errs, func(a, b fielderror.Error) int { return strings.Compare(a.At, b.At) }) // maps have no order
	return count, errs.Err()
}

// changesSince returns the cursor in the parameter since, which may also be a time. Without the
// parameter, the list has all slots, including deleted slots.
func (h *handler) changesSince(r *request, scope CursorScope) (changeCursor, error) {
	since := r.query.Get("since")
	if since == "" {
		return changeCursor{}, nil
	}
	if from, problem := list.Instant(since); problem == "" {
		return changeCursor{Since: max(0, from.UnixMilli())}, nil
	}
	var at changeCursor
	payload, err := h.Cursors.Open(scope, since)
	if err == nil && json.Unmarshal(payload, &at) != nil {
		err = errors.New("was made by another release of this server; send the time of your last poll, less a minute")
	}
	if err != nil {
		return changeCursor{}, invalidCursor(err.Error())
	}
	if at.After == nil {
		at = at.next()
	}
	return at, nil
}

// invalidCursor returns the error of a cursor that cannot be used. problem follows the words "the
// cursor".
func invalidCursor(problem string) error {
	return fielderror.Errors{{In: fielderror.Parameter, At: "since", Code: fielderror.CodeInvalidValue, Detail: "the cursor " + problem}}
}

// renderChanges returns a page of changes and the cursor that follows on it.
func (h *handler) renderChanges(r *request, page store.Page, next string) ([]byte, error) {
	items := []byte{'['}
	for i, rec := range page.Records {
		if i > 0 {
			items = append(items, ',')
		}
		item := schema.NewWriter(items)
		item.String(slots.idField, rec.Key.ID)
		item.String("updatedAt", schema.Stamp(rec.Updated))
		if rec.Deleted {
			item.Raw("deleted", []byte("true"))
		} else {
			body, err := h.render(r, slots, rec)
			if err != nil {
				return nil, err
			}
			item.Raw("deleted", []byte("false"))
			item.String("etag", etag(rec).String())
			item.Raw("slot", body)
		}
		items = item.Done()
	}
	meta := schema.NewWriter(nil)
	meta.String("next", next)
	meta.Raw("more", []byte(strconv.FormatBool(page.Next != nil)))
	body := schema.NewWriter(nil)
	body.Raw("data", append(items, ']'))
	body.Raw("meta", meta.Done())
	return body.Done(), nil
}
