package ahds

import (
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

// canRead reports whether the caller may get an object, or all objects of the resource if id is
// empty. The response to a write needs this right, because it has fields that the caller did not send.
// If the right cannot be checked, canRead reports false, because the write has already succeeded.
func (h *handler) canRead(r *request, group, resource, id string) bool {
	return h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: "get", Group: group, Resource: resource, Name: strings.ToLower(id)}) == nil
}

// respondWritten responds to a write of a record. A caller who may not get the record sees it only if
// the request created it. Otherwise the response has the fields that add writes and those that the
// service set, or no body if add is nil.
func (h *handler) respondWritten(w http.ResponseWriter, r *request, status int, k *kind, rec store.Record, add func(*schema.Writer)) error {
	var more []func(*schema.Writer)
	if add != nil {
		more = append(more, add)
	}
	if status == http.StatusCreated || h.canRead(r, Group, k.resource, rec.Key.ID) {
		return h.respondRecord(w, r, status, k, rec, more...)
	}
	setVersion(w, rec)
	if add == nil {
		return r.respondEmpty(w, status)
	}
	s, err := k.decode(rec.Body.JSON)
	if err != nil {
		return err
	}
	own := schema.NewWriter(nil)
	if k.serve != nil {
		k.serve(h, r, rec, s, own)
	}
	add(own)
	return r.respond(w, status, typeJSON, own.Done())
}

// respondWrittenResource responds to a write of a resource. secret is empty, or the new secret of a
// webhook. A caller who may not get the resource sees it only if the request created it. Otherwise
// the response to a rotation has what verifies signatures, and other responses have no body.
func (h *handler) respondWrittenResource(w http.ResponseWriter, r *request, status int, k *resourceKind, resource webhook.Resource, secret string, rotated bool) error {
	if status == http.StatusCreated || h.canRead(r, ResourceGroup, k.resource, resource.ID) {
		return r.respondResource(w, status, k, resource, secret)
	}
	setResourceVersion(w, resource)
	if !rotated {
		return r.respondEmpty(w, status)
	}
	own := schema.NewWriter(nil)
	writeVerification(own, resource, secret)
	return r.respond(w, status, typeJSON, own.Done())
}

// respondRedelivered responds to the repetition of a delivery. A caller who may not get deliveries
// of the webhook sees neither the subject nor the attempts before.
func (h *handler) respondRedelivered(w http.ResponseWriter, r *request, d delivery.Delivery) error {
	if !h.canRead(r, ResourceGroup, deliveryResource, r.id) {
		d.Event.Subject, d.Attempts = "", nil
	}
	return r.respondDelivery(w, http.StatusAccepted, d)
}
