package ahds

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/delivery"
)

// ReplayFields are the fields of a request to replay deliveries. By default, failed and undelivered
// deliveries are replayed.
var ReplayFields = schema.Fields{
	{Name: "from", Check: schema.Instant(), Required: true},
	{Name: "to", Check: schema.Instant(), Default: "null"},
	{Name: "status", Check: schema.Check{Errors: checkStatuses, Schema: statusesSchema}, Default: `["failed","undelivered"]`},
}

var statusesSchema = schema.JSON{"anyOf": []any{
	schema.OneOf(endedStatuses...).Schema, schema.JSON{"type": "array", "minItems": 1, "items": schema.OneOf(endedStatuses...).Schema},
}}

// checkStatuses accepts a status or an array of statuses.
func checkStatuses(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	wrong := func(code, detail string) fielderror.Errors {
		return fielderror.Errors{{At: string(at), Code: code, Detail: detail}}
	}
	values, ok := statusesOf(value)
	if !ok {
		return wrong(fielderror.CodeWrongType, "the value is neither a status nor an array of statuses; send one or more of "+strings.Join(endedStatuses, ", "))
	}
	if len(values) == 0 {
		return wrong(fielderror.CodeInvalidValue, "the array has no status; send at least one of "+strings.Join(endedStatuses, ", "))
	}
	if _, problem := parseStatuses(values, endedStatuses); problem != "" {
		return wrong(fielderror.CodeInvalidValue, problem)
	}
	return nil
}

// statusesOf returns the words of a status or of an array of statuses.
func statusesOf(value jsontext.Value) (words []string, ok bool) {
	if value.Kind() == jsontext.KindString {
		return []string{schema.String(value)}, true
	}
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &words) != nil {
		return nil, false
	}
	return words, true
}

// replay serves POST …/webhook/{id}/replay. The deliveries of events that were accepted in a range
// of time become pending again.
func (h *handler) replay(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	if err := r.refuseKey("a replay does not support this header; remove the header. Receivers recognize repeated events by their webhook-id"); err != nil {
		return err
	}
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, _, err := ReplayFields.Create(sent, schema.Identity{})
	if err != nil {
		return err
	}
	query := delivery.Query{Webhook: strings.ToLower(r.id), From: content.Time("from")}
	if content["to"].Kind() == jsontext.KindString {
		if query.To = content.Time("to"); !query.To.After(query.From) {
			return fielderror.Errors{{At: "/to", Code: fielderror.CodeOutOfRange, Detail: `"to" is not after "from"; a replay repeats deliveries of events accepted at or after "from" and before "to"`}}
		}
	}
	words, _ := statusesOf(content["status"]) // checkStatuses has accepted it
	query.Statuses, _ = parseStatuses(words, endedStatuses)
	log, err := r.deliveries()
	if err != nil {
		return err
	}
	replayed, err := log.Replay(r.Context(), query)
	if err != nil {
		return err
	}
	body := schema.NewWriter(nil)
	body.Raw("count", jsontext.Value(strconv.FormatInt(replayed.Count, 10)))
	body.Raw("skipped", jsontext.Value(strconv.FormatInt(replayed.Skipped, 10)))
	return r.respond(w, http.StatusAccepted, typeJSON, body.Done())
}
