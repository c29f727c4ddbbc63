package ahds

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	feedResource = "availabilityslotfeeds"
	// feedPath is the path at which calendar programs read a feed. The token in the query string
	// grants access.
	feedPath = "/availability-slot.ics"
	// feedPast and feedFuture are how long before and after now a calendar shows slots.
	feedPast, feedFuture = 31 * 24 * time.Hour, 366 * 24 * time.Hour
	// feedPageSize is the number of slots of one search. No further search runs once a calendar has
	// maxFeedSlots.
	feedPageSize, maxFeedSlots = 500, 5000
)

// feeds are the permissions to read the slots of one resource as a calendar. Deleting a feed
// revokes its URL.
var feeds = &kind{
	recordType: slot.FeedType, segment: "availability-slot-feed", resource: feedResource, idField: slot.FeedIDField,
	fields: slot.FeedFields, lists: slot.FeedLists, sorts: slot.FeedSorts, values: slot.FeedValues,
	change: changeFeed,
	serve: func(h *handler, r *request, rec store.Record, s stored, to *schema.Writer) {
		if s.service.Owner != nil {
			to.String("url", r.site.BaseURL+feedPath+"?token="+feedToken(h.FeedKeys()[0], r, rec.Key.ID, createdAt(rec)))
		}
	},
}

// routeFeeds registers the paths of feeds and calendars.
func (h *handler) routeFeeds(site paths) {
	h.routeRecords(site, feeds)
	site.add(feedPath, methods{http.MethodGet: {open: true, produces: typeCalendar, run: h.calendar}})
}

// feedToken returns the token of a feed: the id of the feed and an HMAC of made. made distinguishes
// the feed from a deleted feed with the same id. It is the result of createdAt, or the UID of the
// record in tokens of earlier releases. A move of the Site to another storage keeps the time of
// creation, but not the UID.
func feedToken(key []byte, r *request, id, made string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("feed\x00" + r.site.ID + "\x00" + made))
	return strings.ToLower(id) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// createdAt returns the id of a feed and the time at which its record was created, as one text. The
// text changes if the feed is deleted and created again with the same id.
func createdAt(feed store.Record) string {
	return strings.ToLower(feed.Key.ID) + "\x00" + strconv.FormatInt(feed.Created.UnixMilli(), 10)
}

// calendar serves GET …/availability-slot.ics.
func (h *handler) calendar(w http.ResponseWriter, r *request) error {
	token := r.query["token"]
	if len(r.query) != 1 || len(token) != 1 {
		return fielderror.Errors{{In: fielderror.Parameter, At: "token", Code: fielderror.CodeInvalidValue, Detail: "the only parameter is token; send it once, as in the url of the feed"}}
	}
	id, _, _ := strings.Cut(token[0], ".")
	if !schema.IsUUID(id) {
		return store.ErrNotFound
	}
	feed, err := r.site.Store.Get(r.Context(), feeds.key(id))
	if err != nil {
		return err
	}
	proven := func(key []byte) bool {
		return slices.ContainsFunc([]string{createdAt(feed), feed.UID}, func(made string) bool {
			return hmac.Equal([]byte(feedToken(key, r, feed.Key.ID, made)), []byte(token[0]))
		})
	}
	if !slices.ContainsFunc(h.FeedKeys(), proven) {
		return store.ErrNotFound
	}
	s, err := feeds.decode(feed.Body.JSON)
	if err == nil {
		err = h.actAsOwner(r, feed.Key.ID, s.service.Owner)
	}
	if err != nil {
		return err
	}
	end, err := r.site.Limiter.Search(r.Context(), r.caller.Name)
	if err != nil {
		return err
	}
	defer end()
	events, err := h.events(r, strings.ToLower(s.content.Text("resourceId")))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := slot.WriteCalendar(&text, s.content.Text("description"), events); err != nil {
		return err
	}
	tag := web.ETag{Opaque: digest(text.Bytes())}
	w.Header().Set("ETag", tag.String())
	unchanged, err := web.IsNotModified(r.Header, etagSyntax, tag, time.Time{})
	if err != nil {
		return err
	}
	if unchanged {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, typeCalendar+"; charset=utf-8", text.Bytes())
}

// events returns the active slots of a resource, from feedPast before now to feedFuture after now,
// as calendar events in the order of startAt.
func (h *handler) events(r *request, resource string) ([]slot.Event, error) {
	now := h.Now()
	query := store.Query{
		Types: []string{slot.Type}, Access: store.Access{slot.Type: store.All{}}, Where: slot.Between(resource, now.Add(-feedPast), now.Add(feedFuture)),
		Sort: []store.Sort{slot.Sorts["startAt"]}, Count: feedPageSize, Total: store.TotalNone,
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
			events = append(events, slotOf(rec.Key.ID, s).Event(r.site.ID, rec.Version, rec.Updated, now))
		}
		if query.After = page.Next; query.After == nil || len(events) >= maxFeedSlots {
			return events, nil
		}
	}
}
