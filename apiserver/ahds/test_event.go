package ahds

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/store"
)

// testWebhook serves POST …/webhook/{id}/test. It accepts an event of the webhook's type with
// example data for this webhook alone, even if the webhook event of the type is disabled.
func (h *handler) testWebhook(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	if err := r.refuseKey("a test does not support this header, because each request sends another event; remove the header"); err != nil {
		return err
	}
	if _, _, err := r.readOptions(w, nil); err != nil {
		return err
	}
	if _, err := r.deliveries(); err != nil {
		return err
	}
	if r.site.Store == nil || r.site.Events == nil {
		return store.ErrUnavailable
	}
	hook, err := r.site.Webhooks.Get(r.Context(), r.id)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("create the id of a test event: %w", err)
	}
	eventID := id.String()
	if err := acceptTest(r, eventID, hook.Content.Text("eventType"), hook.ID); err != nil {
		return err
	}
	body := schema.NewWriter(nil)
	body.String("deliveryId", delivery.DeliveryID(eventID, hook.ID))
	body.String("eventId", eventID)
	path := r.site.BaseURL + "/" + webhooks.segment + "/" + hook.ID + "/delivery/" + delivery.DeliveryID(eventID, hook.ID)
	w.Header().Set("Location", path)
	return r.respond(w, http.StatusAccepted, typeJSON, body.Done())
}

// acceptTest stores a test event.
func acceptTest(r *request, id, eventType, hook string) error {
	of, known := events.TypeOf(eventType)
	if !known {
		return fmt.Errorf("test webhook %s: unknown event type %q", hook, eventType)
	}
	body, err := event.Memory{ID: id, Type: eventType, Made: "test of " + hook}.Body()
	if err != nil {
		return err
	}
	_, err = r.site.Store.Write(r.Context(), []store.Op{{
		Kind: store.Put, Key: event.KeyOf(id), Method: store.MethodPost, Body: body, If: store.Precondition{Absent: true},
		Events: r.site.Events.Test(id, of, hook),
	}})
	return err
}
