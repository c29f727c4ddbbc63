package ahds

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// deliveryResource is the RBAC subresource of deliveries: list and get read the log, create sends
// deliveries, to receivers or as a stream.
const deliveryResource = "webhooks/deliveries"

// routeDeliveries registers the paths of deliveries.
func (h *handler) routeDeliveries(site paths) {
	may := func(verb string, run func(http.ResponseWriter, *request) error) operation {
		return operation{verb: verb, group: ResourceGroup, resource: deliveryResource, run: run}
	}
	base := "/" + webhooks.segment + "/{id}"
	site.add(base+"/test", methods{http.MethodPost: may("create", h.testWebhook)})
	site.add(base+"/replay", methods{http.MethodPost: may("create", h.replay)})
	site.add(base+"/delivery", methods{http.MethodGet: may("list", h.listDeliveries)})
	stream := may("create", nil)
	stream.streams, stream.produces = true, typeEventStream
	stream.run = func(w http.ResponseWriter, r *request) error { return h.stream(w, r, stream) }
	site.add(base+"/delivery/stream", methods{http.MethodGet: stream})
	site.add(base+"/delivery/{deliveryId}", methods{http.MethodGet: may("get", h.readDelivery)})
	site.add(base+"/delivery/{deliveryId}/redeliver", methods{http.MethodPost: may("create", h.redeliver)})
	site.add("/delivery/{deliveryId}/redeliver", methods{http.MethodPost: may("create", h.redeliverAny)})
}

// DeliveryLists are the parameters of a list of deliveries. The newest event is always first.
var DeliveryLists = list.Options[func(*delivery.Query)]{
	Fixed: true,
	Filters: []list.Filter[func(*delivery.Query)]{
		{Name: "status", Schema: schema.CommaSeparated(DeliveryStatuses), Parse: func(value string) (func(*delivery.Query), string) {
			statuses, problem := parseStatuses(strings.Split(value, ","), DeliveryStatuses)
			return func(q *delivery.Query) { q.Statuses = statuses }, problem
		}},
		{Name: "from", Schema: list.InstantSchema, Parse: func(value string) (func(*delivery.Query), string) {
			at, problem := list.Instant(value)
			return func(q *delivery.Query) { q.From = at }, problem
		}},
		{Name: "to", Schema: list.InstantSchema, Parse: func(value string) (func(*delivery.Query), string) {
			at, problem := list.Instant(value)
			return func(q *delivery.Query) { q.To = at }, problem
		}},
	},
}

var (
	// DeliveryStatuses are the statuses of deliveries.
	DeliveryStatuses = []string{string(delivery.Pending), string(delivery.Delivered), string(delivery.Failed), string(delivery.Undelivered)}
	// endedStatuses are the statuses of deliveries that can be replayed.
	endedStatuses = DeliveryStatuses[1:]
)

func parseStatuses(values, words []string) (statuses []delivery.Status, problem string) {
	for _, value := range values {
		word, problem := list.OneOf(value, words...)
		if problem != "" {
			return nil, problem
		}
		if status := delivery.Status(word); !slices.Contains(statuses, status) {
			statuses = append(statuses, status)
		}
	}
	return statuses, ""
}

// deliveries returns the delivery log of the site. Errors: store.ErrUnavailable while the storage is
// not open, store.ErrNotFound if the webhook of the path does not exist.
func (r *request) deliveries() (delivery.Log, error) {
	if r.site.Deliveries == nil {
		return nil, store.ErrUnavailable
	}
	if _, err := r.site.Webhooks.Get(r.Context(), r.id); err != nil {
		return nil, err
	}
	return r.site.Deliveries, nil
}

// deliveryID returns the id of the delivery in the path, in lower case.
func (r *request) deliveryID() (string, error) {
	id := web.PathParameter(r.Request, "deliveryId")
	if !schema.IsUUID(id) {
		return "", fielderror.Errors{{In: fielderror.Parameter, At: "deliveryId", Code: fielderror.CodeInvalidValue, Detail: "the id of the delivery in the path: " + schema.NotUUID(id)}}
	}
	return strings.ToLower(id), nil
}

// listDeliveries serves GET …/webhook/{id}/delivery.
func (h *handler) listDeliveries(w http.ResponseWriter, r *request) error {
	asked, err := list.Parse(r.query, DeliveryLists)
	if err != nil {
		return err
	}
	r.auditParameters()
	log, err := r.deliveries()
	if err != nil {
		return err
	}
	query := delivery.Query{Webhook: strings.ToLower(r.id), Offset: asked.Skip(), Count: asked.PageSize}
	for _, add := range asked.Where {
		add(&query)
	}
	found, total, err := log.Deliveries(r.Context(), query)
	if err != nil {
		return err
	}
	hides, err := r.hidesRestricted(found...)
	if err != nil {
		return err
	}
	items := make([]jsontext.Value, len(found))
	for i, d := range found {
		items[i] = renderDelivery(d, hides)
	}
	return r.respond(w, http.StatusOK, typeJSON, asked.Envelope(items, total))
}

// readDelivery serves GET …/webhook/{id}/delivery/{deliveryId}. The response omits the body that
// was sent, because it can contain more of a record than the caller may see.
func (h *handler) readDelivery(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	id, err := r.deliveryID()
	if err != nil {
		return err
	}
	log, err := r.deliveries()
	if err != nil {
		return err
	}
	found, err := log.Delivery(r.Context(), strings.ToLower(r.id), id)
	if err != nil {
		return err
	}
	return r.respondDelivery(w, http.StatusOK, found)
}

// redeliver serves POST …/webhook/{id}/delivery/{deliveryId}/redeliver.
func (h *handler) redeliver(w http.ResponseWriter, r *request) error {
	id, err := r.sendOptions(w)
	if err != nil {
		return err
	}
	log, err := r.deliveries()
	if err != nil {
		return err
	}
	sent, err := log.Redeliver(r.Context(), strings.ToLower(r.id), id)
	if err != nil {
		return err
	}
	return h.respondRedelivered(w, r, sent)
}

// redeliverAny serves POST …/delivery/{deliveryId}/redeliver. It tries the webhooks of the site, of
// which there are few, until one has the delivery.
func (h *handler) redeliverAny(w http.ResponseWriter, r *request) error {
	id, err := r.sendOptions(w)
	if err != nil {
		return err
	}
	if r.site.Deliveries == nil {
		return store.ErrUnavailable
	}
	all, err := r.site.Webhooks.List(r.Context())
	if err != nil {
		return err
	}
	for _, hook := range all {
		sent, err := r.site.Deliveries.Redeliver(r.Context(), hook.ID, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		return h.respondRedelivered(w, r, sent)
	}
	return store.ErrNotFound
}

// sendOptions checks a request to redeliver, which has no parameters, no Idempotency-Key and no
// members in its body, and returns the id of the delivery in its path.
func (r *request) sendOptions(w http.ResponseWriter) (deliveryID string, err error) {
	if err := list.ParseNone(r.query); err != nil {
		return "", err
	}
	if err := r.refuseKey("redeliver does not support this header; remove the header. Receivers recognize repeated events by their webhook-id"); err != nil {
		return "", err
	}
	if _, _, err := r.readOptions(w, nil); err != nil {
		return "", err
	}
	return r.deliveryID()
}

// respondDelivery writes a delivery as the response. Errors: those of hidesRestricted.
func (r *request) respondDelivery(w http.ResponseWriter, status int, d delivery.Delivery) error {
	hides, err := r.hidesRestricted(d)
	if err != nil {
		return err
	}
	return r.respond(w, status, typeJSON, renderDelivery(d, hides))
}

// hidesRestricted reports whether one of the deliveries has a restricted event and the caller may not
// see all records. Errors: access.ErrUnavailable.
func (r *request) hidesRestricted(deliveries ...delivery.Delivery) (bool, error) {
	if !slices.ContainsFunc(deliveries, func(d delivery.Delivery) bool { return d.Event.Restricted }) {
		return false, nil
	}
	err := r.site.Privileged(r.Context())
	if forbidden := new(access.ForbiddenError); errors.As(err, &forbidden) {
		return true, nil
	}
	return false, err
}

// renderDelivery returns the JSON of a delivery. If hidesRestricted is set and the event is
// restricted, it omits the subject, which names a hidden record, and the text that the receiver
// sent, which may repeat the event.
func renderDelivery(d delivery.Delivery, hidesRestricted bool) []byte {
	hides := hidesRestricted && d.Event.Restricted
	w := schema.NewWriter(nil)
	w.String("deliveryId", d.ID)
	w.String("webhookId", d.Webhook)
	w.String("eventId", d.Event.ID)
	w.String("eventType", d.Event.Type)
	if d.Event.Subject != "" && !hides {
		w.String("subject", d.Event.Subject)
	}
	w.String("status", string(d.Status))
	w.String("acceptedAt", schema.Stamp(d.Event.Accepted))
	if d.Status == delivery.Pending && !d.NextAttempt.IsZero() {
		w.String("nextAttemptAt", schema.Stamp(d.NextAttempt))
	}
	if !d.Finished.IsZero() {
		w.String("finishedAt", schema.Stamp(d.Finished))
	}
	attempts := []byte{'['}
	for i, attempt := range d.Attempts {
		if i > 0 {
			attempts = append(attempts, ',')
		}
		attempts = renderAttempt(attempts, attempt, hides)
	}
	w.Raw("attempts", append(attempts, ']'))
	return w.Done()
}

// renderAttempt appends the JSON of an attempt to text. The receiver's response is written as a
// JSON string, whatever its media type. If hides is set, nothing that the receiver sent is written
// except the status.
func renderAttempt(text []byte, attempt delivery.Attempt, hides bool) []byte {
	message := attempt.Message
	if hides {
		message = attempt.OwnMessage()
	}
	w := schema.NewWriter(text)
	w.String("at", schema.Stamp(attempt.At))
	w.String("reason", string(attempt.Reason))
	w.String("message", message)
	w.Raw("latencyMs", jsontext.Value(strconv.FormatInt(attempt.Duration.Milliseconds(), 10)))
	if attempt.StatusCode != 0 {
		w.Raw("status", jsontext.Value(strconv.Itoa(attempt.StatusCode)))
	}
	if attempt.StatusCode != 0 && !hides {
		w.String("response", string(attempt.Response))
	}
	return w.Done()
}
