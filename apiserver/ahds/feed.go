package ahds

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	feedResource = "availabilityslotfeeds"
	// feedPath is where calendar programs read; what they may, the token in it says.
	feedPath = "/availability-slot.ics"
	// feedPast and feedFuture are how far a calendar reaches.
	feedPast, feedFuture = 31 * 24 * time.Hour, 366 * 24 * time.Hour
	// feedPage and feedMost are how many slots are read at once, and in all.
	feedPage, feedMost = 500, 5000
)

// feeds are the permissions to read one resource's slots as a calendar. Deleting one
// revokes its address.
var feeds = &kind{
	recordType: slot.FeedType, segment: "availability-slot-feed", resource: feedResource, idField: slot.FeedIDField,
	fields: slot.FeedFields, lists: slot.FeedLists, sorts: slot.FeedSorts, entries: slot.FeedEntries,
	serve: func(h *handler, r *request, rec store.Record, _ stored, to *document.Writer) {
		to.String("url", r.site.BaseURL+feedPath+"?token="+h.feedToken(r, rec))
	},
}

// routeFeeds lists the paths of calendars.
func (h *handler) routeFeeds(site chi.Router) {
	h.routeRecords(site, feeds)
	site.Handle(feedPath, h.serve(methods{http.MethodGet: {open: true, produces: typeCalendar, run: h.calendar}}))
}

// feedToken is the token of a feed: its id, and a proof that nobody makes without the key.
// A feed that is deleted and made again under its id has another.
func (h *handler) feedToken(r *request, rec store.Record) string {
	mac := hmac.New(sha256.New, h.TokenKey)
	mac.Write([]byte("feed\x00" + r.site.ID + "\x00" + rec.UID))
	return strings.ToLower(rec.Key.ID) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// calendar serves GET …/availability-slot.ics.
func (h *handler) calendar(w http.ResponseWriter, r *request) error {
	token := r.query["token"]
	if len(r.query) != 1 || len(token) != 1 {
		return fault.Faults{{In: fault.Parameter, At: "token", Code: fault.CodeInvalidValue, Detail: "give the token of the calendar once, and nothing else"}}
	}
	id, _, _ := strings.Cut(token[0], ".")
	if !document.IsUUID(id) {
		return store.ErrNotFound
	}
	feed, err := r.site.Store.Get(r.Context(), feeds.key(id))
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(h.feedToken(r, feed)), []byte(token[0])) {
		return store.ErrNotFound
	}
	s, err := feeds.decode(feed.Body.JSON)
	if err != nil {
		return err
	}
	events, err := h.events(r, strings.ToLower(s.content.Text("resourceId")))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := slot.WriteCalendar(&text, s.content.Text("description"), events); err != nil {
		return err
	}
	tag := `"` + digest(text.Bytes()) + `"`
	w.Header().Set("ETag", tag)
	unchanged, err := isNotModified(r.Header, tag, h.Now())
	if err != nil {
		return err
	}
	if unchanged {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, typeCalendar+"; charset=utf-8", text.Bytes())
}

// events are the slots of a resource, as a calendar shows them.
func (h *handler) events(r *request, resource string) ([]slot.Event, error) {
	now := h.Now()
	query := store.Query{
		Types: []string{slot.Type}, Where: slot.Between(resource, now.Add(-feedPast), now.Add(feedFuture)),
		Sort: []store.Sort{slot.Sorts["startAt"]}, Count: feedPage, Total: store.TotalNone,
	}
	var events []slot.Event
	for {
		page, err := r.site.Store.Search(r.Context(), query)
		if err != nil {
			return nil, err
		}
		for _, rec := range page.Records {
			s, err := slots.decode(rec.Body.JSON)
			if err != nil {
				return nil, err
			}
			events = append(events, slot.Event{Site: r.site.ID, State: slotOf(rec.Key.ID, s), Version: rec.Version, Updated: rec.Updated, Now: now})
		}
		if query.After = page.Next; query.After == nil || len(events) >= feedMost {
			return events, nil
		}
	}
}
