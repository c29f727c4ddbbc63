package ahds

import (
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// rotationOverlap is how long the previous secret also signs after a rotation.
const rotationOverlap = 24 * time.Hour

// replaceResource serves PUT …/{kind}/{id}.
func (h *handler) replaceResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, text, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, err := k.fields.Replace(sent, schema.Identity{Name: k.idField, Path: r.id})
	if err != nil {
		return err
	}
	return h.changeResource(w, r, k, key.of(r, text), content.Bool("isActive"), func(schema.Content) (schema.Content, error) {
		return maps.Clone(content), nil
	})
}

// patchResource serves PATCH …/{kind}/{id}. RFC 7396.
func (h *handler) patchResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, text, err := r.readObject(w, typeMergePatch, typeJSON)
	if err != nil {
		return err
	}
	enables := string(sent.Get("isActive")) == "true"
	return h.changeResource(w, r, k, key.of(r, text), enables, func(before schema.Content) (schema.Content, error) {
		content, err := k.fields.Patch(before, sent, schema.Identity{Name: k.idField, Path: r.id})
		if err == nil && !k.fields.Sets(sent) {
			return nil, errNothingChanges
		}
		return content, err
	})
}

// changeResource edits the current resource of the path and responds with it. A change with an
// idempotency key is applied once. A repeated request gets the resource as it is now. If enables is
// set, the change also enables a webhook that the server disabled, even if its content stays the
// same. edit returns errNothingChanges to leave the resource as it is; the key is not used then.
func (h *handler) changeResource(
	w http.ResponseWriter, r *request, k *resourceKind, key idempotencyKey, enables bool, edit func(schema.Content) (schema.Content, error),
) error {
	checkTag, err := r.writePrecondition()
	if err != nil {
		return err
	}
	changed, err := k.of(r.site).Change(r.Context(), r.id, func(resource webhook.Resource) (webhook.Resource, error) {
		own := serviceDataOf(resource)
		if _, used, err := key.usedIn(own.Keys); err != nil || used {
			return resource, err
		}
		if err := checkTag(resource); err != nil {
			return resource, err
		}
		next, err := edit(resource.Content)
		if errors.Is(err, errNothingChanges) {
			return resource, nil
		}
		if err == nil && k.guard != nil && !next.Equal(resource.Content) {
			err = k.guard(r, next)
		}
		resource.Content, resource.Enable = next, enables
		if err == nil && key.key != "" {
			own.Keys = key.addTo(own.Keys, resource.Generation+1, h.Now())
			resource.ServiceData, err = own.encode()
		}
		return resource, err
	})
	if err != nil {
		return err
	}
	return h.respondWrittenResource(w, r, http.StatusOK, k, changed, "", false)
}

// deleteResource serves DELETE …/{kind}/{id}. The API cannot restore a deleted resource. Contract
// 4.2.
func (h *handler) deleteResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	checkTag, err := r.writePrecondition()
	if err != nil {
		return err
	}
	if err := k.of(r.site).Delete(r.Context(), r.id, checkTag); err != nil {
		return err
	}
	return r.respondEmpty(w, http.StatusNoContent)
}

// rotateSecret serves POST …/webhook/{id}/rotate-secret.
func (h *handler) rotateSecret(w http.ResponseWriter, r *request) error {
	checkTag, err := r.writePrecondition()
	if err != nil {
		return err
	}
	if err := r.refuseKey("rotate-secret does not support this header, because the new secret is not kept for a second response; remove the header, and send If-Match so that a retry does not rotate again"); err != nil {
		return err
	}
	if _, _, err := r.readOptions(w, nil); err != nil {
		return err
	}
	rotated, secret, err := r.site.Webhooks.Rotate(r.Context(), r.id, h.Now().Add(rotationOverlap), func(resource webhook.Resource) error {
		if err := checkTag(resource); err != nil {
			return err
		}
		return guardClearance(r, resource.Content)
	})
	if err != nil {
		return err
	}
	return h.respondWrittenResource(w, r, http.StatusOK, webhooks, rotated, secret, true)
}

// writePrecondition returns the check of a resource against the If-Match of a write. Errors:
// fielderror.Errors if the query string has parameters, and those of precondition.
func (r *request) writePrecondition() (check func(webhook.Resource) error, err error) {
	if err := list.ParseNone(r.query); err != nil {
		return nil, err
	}
	ifMatch, err := r.precondition()
	return func(resource webhook.Resource) error { return checkIfMatch(ifMatch, resourceTag(resource)) }, err
}
