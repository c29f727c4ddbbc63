package openapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

const (
	mediaProblem    = "application/problem+json"
	mediaMergePatch = "application/merge-patch+json"
	mediaStream     = "text/event-stream"
	mediaCalendar   = "text/calendar"
)

// ahdsOperation describes the operation of a method at a path of the AHDS API.
type ahdsOperation struct {
	id, summary string
	query       []list.Parameter
	headers     []string
	// sends is the name of the schema of the body. sendsType is its media type, which is JSON if empty.
	// optional is set if the body may be absent. example is an example of the body.
	sends, sendsType, example string
	optional                  bool
	// status is the status of success. The body of the response is JSON of the schema with the name gives
	// or, if gives is empty, text of the media type givesType. If both are empty, there is no body.
	status, gives, givesType string
	// also are further statuses of success with the same response. notModified adds 304.
	also        []string
	notModified bool
	errors      []string
}

var (
	ahdsWriteErrors = []string{"409", "412", "413", "415", "422", "507"}
	ahdsBodyErrors  = []string{"413", "415"}
)

// ahdsTags are the tags of the AHDS API by the first segment of the path.
var ahdsTags = map[string]tag{
	"availability-slot":      {"AHDS: slots", "Times of a resource that can be held and booked."},
	"availability-slot.ics":  {"AHDS: calendars", "Slots for calendar programs."},
	"availability-slot-feed": {"AHDS: calendars", "Slots for calendar programs."},
	"eventgroup":             {"AHDS: event groups", "Groups of events, such as a vaccination day."},
	"event":                  {"AHDS: events", "Events that clients publish, and their types."},
	"event-type":             {"AHDS: events", "Events that clients publish, and their types."},
	"webhook-event":          {"AHDS: webhook events", "Which types of events a site sends."},
	"webhook":                {"AHDS: webhooks", "Receivers of events, and what they received."},
	"site-status":            {"AHDS: the site", "The state of the site."},
	"site-usage":             {"AHDS: the site", "The state of the site."},
	"rights":                 {"AHDS: the site", "The state of the site."},
	"delivery":               {"AHDS: webhooks", "Receivers of events, and what they received."},
}

// ahdsOperations describes the operations of the AHDS API by method and path.
func ahdsOperations() map[string]ahdsOperation {
	const byID, slots, deliveries = "/{id}", "/availability-slot", "/webhook/{id}/delivery"
	all := map[string]ahdsOperation{
		"POST " + slots + "/batch":                       {id: "batchSlots", summary: "Create, replace and delete slots", headers: []string{"Idempotency-Key"}, sends: "Batch", status: "200", gives: "BatchResult", errors: ahdsBodyErrors},
		"POST " + slots + "/generate":                    {id: "generateSlots", summary: "Create the slots within opening hours", sends: "Schedule", example: scheduleExample, status: "200", gives: "GeneratedSlots", errors: ahdsWriteErrors},
		"GET " + slots + "/changes":                      {id: "slotChanges", summary: "List changes of slots", query: changesQuery, status: "200", gives: "SlotChanges"},
		"POST " + slots + byID + "/hold":                 transition("hold", "Hold a slot", "Hold", "HeldSlot"),
		"POST " + slots + byID + "/book":                 transition("book", "Book a slot", "HoldToken", "AvailabilitySlot"),
		"POST " + slots + byID + "/release":              transition("release", "End the hold or the booking of a slot", "HoldToken", "AvailabilitySlot"),
		"GET /availability-slot.ics":                     {id: "calendar", summary: "Read slots as a calendar", query: []list.Parameter{{Name: "token", Schema: text}}, headers: []string{"If-None-Match"}, status: "200", gives: "", givesType: mediaCalendar, notModified: true},
		"POST /webhook" + byID + "/rotate-secret":        {id: "rotateSecret", summary: "Replace the signing secret of a webhook", headers: []string{"If-Match"}, optional: true, sends: "Empty", status: "200", gives: "Webhook", errors: ahdsWriteErrors},
		"POST /webhook" + byID + "/test":                 {id: "testWebhook", summary: "Send a test event to a webhook", optional: true, sends: "Empty", status: "202", gives: "TestSent", errors: append([]string{"507"}, ahdsBodyErrors...)},
		"POST /webhook" + byID + "/replay":               {id: "replay", summary: "Repeat the deliveries of a period to a webhook", sends: "Replay", example: `{"from":"2026-03-01T00:00:00Z","status":["failed"]}`, status: "202", gives: "Replayed", errors: append([]string{"507"}, ahdsBodyErrors...)},
		"GET " + deliveries:                              {id: "listDeliveries", summary: "List the deliveries to a webhook", query: ahds.DeliveryLists.Parameters(), status: "200", gives: "DeliveryList"},
		"GET " + deliveries + "/stream":                  {id: "streamDeliveries", summary: "Follow the deliveries to a webhook as Server-Sent Events", headers: []string{"Last-Event-ID"}, status: "200", givesType: mediaStream},
		"GET " + deliveries + "/{deliveryId}":            {id: "readDelivery", summary: "Read a delivery to a webhook", status: "200", gives: "Delivery"},
		"POST " + deliveries + "/{deliveryId}/redeliver": {id: "redeliver", summary: "Repeat a delivery to a webhook", optional: true, sends: "Empty", status: "202", gives: "Delivery", errors: append([]string{"410", "507"}, ahdsBodyErrors...)},
		"POST /delivery/{deliveryId}/redeliver":          {id: "redeliverAny", summary: "Repeat a delivery without naming its webhook", optional: true, sends: "Empty", status: "202", gives: "Delivery", errors: append([]string{"410", "507"}, ahdsBodyErrors...)},
		"POST /event":                                    {id: "publishEvents", summary: "Publish events", headers: []string{"Idempotency-Key"}, sends: "Events", example: eventExample, status: "202", gives: "AcceptedEvents", errors: ahdsWriteErrors},
		"GET /site-status":                               {id: "siteStatus", summary: "Read the conditions of the Site", status: "200", gives: "SiteStatus"},
		"GET /site-usage":                                {id: "siteUsage", summary: "Read what the site stores, and its requests and deliveries of the last hour", status: "200", gives: "SiteUsage"},
		"GET /rights":                                    {id: "rights", summary: "Read the rights of the caller to this API", status: "200", gives: "Rights"},
		"GET /event-type":                                {id: "listEventTypes", summary: "List the types of events", query: ahds.EventTypeLists.Parameters(), status: "200", gives: "EventTypeList"},
		"GET /event-type/{type}":                         {id: "readEventType", summary: "Read a type of events", status: "200", gives: "EventType"},
	}
	lists := map[string][]list.Parameter{
		"availability-slot": slot.Lists.Parameters(), "eventgroup": eventgroup.Lists.Parameters(), "availability-slot-feed": slot.FeedLists.Parameters(),
		"webhook-event": webhook.EventLists.Parameters(), "webhook": webhook.Lists.Parameters(),
	}
	for _, k := range ahdsKinds {
		maps.Copy(all, k.operations(lists[k.segment]))
	}
	return all
}

// operations describes the operations that every kind of object has. Contract 4.
func (k ahdsKind) operations(query []list.Parameter) map[string]ahdsOperation {
	path, byID := "/"+k.segment, "/"+k.segment+"/{id}"
	return map[string]ahdsOperation{
		"GET " + path:    {id: "list" + k.name, summary: "List", query: query, status: "200", gives: k.name + "List"},
		"POST " + path:   {id: "create" + k.name, summary: "Create", headers: []string{"Idempotency-Key"}, sends: "New" + k.name, example: ahdsExamples[k.name], status: "201", also: []string{"200"}, gives: k.name, errors: ahdsWriteErrors},
		"GET " + byID:    {id: "read" + k.name, summary: "Read", headers: []string{"If-None-Match", "If-Modified-Since"}, status: "200", gives: k.name, notModified: true},
		"PUT " + byID:    {id: "replace" + k.name, summary: "Replace", headers: []string{"If-Match", "Idempotency-Key"}, sends: "Whole" + k.name, status: "200", gives: k.name, errors: ahdsWriteErrors},
		"PATCH " + byID:  {id: "patch" + k.name, summary: "Change some fields", headers: []string{"If-Match", "Idempotency-Key"}, sends: k.name + "Patch", sendsType: mediaMergePatch, status: "200", gives: k.name, errors: ahdsWriteErrors},
		"DELETE " + byID: {id: "delete" + k.name, summary: "Delete", headers: []string{"If-Match"}, status: "204", errors: ahdsWriteErrors},
	}
}

func transition(id, summary, sends, gives string) ahdsOperation {
	return ahdsOperation{
		id: id, summary: summary, headers: []string{"If-Match", "Idempotency-Key"}, sends: sends, optional: true,
		status: "200", gives: gives, errors: ahdsWriteErrors,
	}
}

// readableSchemas are the schemas of responses to writes that show objects to callers who may get them.
var readableSchemas = []string{"AvailabilitySlot", "HeldSlot", "BatchResult", "EventGroup", "AvailabilitySlotFeed", "WebhookEvent", "Webhook", "Delivery"}

// changesQuery are the parameters of a list of changes.
var changesQuery = []list.Parameter{
	{Name: "since", Schema: text},
	{Name: "pageSize", Schema: schema.JSON{"type": "integer", "minimum": 1, "maximum": ahds.MaxChanges, "default": ahds.DefaultChanges}},
}

// addAHDS adds the AHDS API.
func (d *description) addAHDS() {
	c := d.Components
	c.addAHDSSchemas()
	for _, segment := range slices.Sorted(maps.Keys(ahdsTags)) {
		if !slices.Contains(d.Tags, ahdsTags[segment]) {
			d.Tags = append(d.Tags, ahdsTags[segment])
		}
	}
	operations := ahdsOperations()
	for _, r := range ahds.Routes() {
		described, known := operations[r.Method+" "+r.Path]
		if !known {
			panic("apiserver/openapi: " + r.Method + " " + r.Path + " has no description")
		}
		segment, _, _ := strings.Cut(r.Path[1:], "/")
		op := operation{
			Tags: []string{ahdsTags[segment].Name}, Summary: described.summary, OperationID: described.id,
			Description: rightOf(r), Parameters: pathParameters(r.Path, ahdsIDs),
			RequestBody: described.body(), Responses: described.success(),
		}
		for _, p := range described.query {
			op.Parameters = append(op.Parameters, parameter{Name: p.Name, In: "query", Schema: p.Schema})
		}
		op.Parameters = append(op.Parameters, c.header(described.headers...)...)
		if r.Method != http.MethodGet && slices.Contains(readableSchemas, described.gives) {
			op.Description += " The response shows what existed before only with the right to get it."
		}
		switch {
		case r.Public:
			op.Description = "Needs no bearer token: the parameter token gives access, also at a hidden site."
		case r.Right.Verb == "":
			op.Description = "Needs a valid token, but no access right."
		}
		c.addErrors(&op, r, described.errors, ahdsError)
		d.add("/ahds/v1"+r.Path, r.Method, op)
	}
}

// ahdsIDs are the parameters of paths. The ids of the AHDS API are UUIDs.
var ahdsIDs = func() map[string]parameter {
	all := maps.Clone(ids)
	all["id"] = parameter{Schema: uuid, Description: "The id of the resource, a UUID."}
	return all
}()

func (o ahdsOperation) body() *requestBody {
	if o.sends == "" {
		return nil
	}
	kind := mediaJSON
	if o.sendsType != "" {
		kind = o.sendsType
	}
	body := content{Schema: refTo(o.sends)}
	if o.example != "" {
		body.Examples = map[string]example{"example": {Value: json.RawMessage(o.example)}}
	}
	all := map[string]content{kind: body}
	if o.sends == "Events" {
		all[event.TypeCloudEvent] = content{Schema: schema.JSON{"type": "object"}}
		all[event.TypeCloudEventBatch] = content{Schema: schema.JSON{"type": "array", "items": schema.JSON{"type": "object"}}}
	}
	return &requestBody{Required: !o.optional, Content: all}
}

func (o ahdsOperation) success() map[string]response {
	answer := response{Description: "Done"}
	switch {
	case o.gives != "":
		answer.Content = map[string]content{mediaJSON: {Schema: refTo(o.gives)}}
	case o.givesType != "":
		answer.Content = map[string]content{o.givesType: {Schema: text}}
	}
	switch {
	case len(o.also) > 0: // creates
		answer.Headers = headerRefs("ETag", "Last-Modified", "Location")
	case slices.Contains(o.headers, "If-Match") && o.status != "204", slices.Contains(o.headers, "If-Modified-Since"):
		answer.Headers = headerRefs("ETag", "Last-Modified")
	case o.notModified:
		answer.Headers = headerRefs("ETag")
	}
	all := map[string]response{}
	for _, status := range append([]string{o.status}, o.also...) {
		all[status] = answer
	}
	if o.notModified {
		all["304"] = notModified
	}
	return all
}
