package ahds

import (
	"errors"
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
// Errors: access.ErrUnavailable if the right cannot be checked.
func (h *handler) canRead(r *request, group, resource, id string) (bool, error) {
	err := h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: "get", Group: group, Resource: resource, Name: strings.ToLower(id)})
	var forbidden *access.ForbiddenError
	if errors.As(err, &forbidden) || errors.Is(err, access.ErrSiteHidden) {
		return false, nil
	}
	return err == nil, err
}

// canReadWritten is like canRead, but for a write that has succeeded, which an error must not hide: it
// reports false if the right cannot be checked.
func (h *handler) canReadWritten(r *request, group, resource, id string) bool {
	may, _ := h.canRead(r, group, resource, id)
	return may
}

// respondWritten responds to a write of a record. A caller who may not get the record sees it only if
// the request created it. Otherwise the response has the fields of kind.serve and of add, without the
// times, or no body if add is nil.
func (h *handler) respondWritten(w http.ResponseWriter, r *request, status int, k *kind, rec store.Record, add func(*schema.Writer)) error {
	var more []func(*schema.Writer)
	if add != nil {
		more = append(more, add)
	}
	if status == http.StatusCreated || h.canReadWritten(r, Group, k.resource, rec.Key.ID) {
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
	if status == http.StatusCreated || h.canReadWritten(r, ResourceGroup, k.resource, resource.ID) {
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
	if !h.canReadWritten(r, ResourceGroup, deliveryResource, d.Webhook) {
		d.Event.Subject, d.Attempts = "", nil
	}
	return r.respondDelivery(w, http.StatusAccepted, d)
}
