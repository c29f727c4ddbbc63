package ahds

import (
	"maps"
	"net/http"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// rotationOverlap is how long the secret before a rotation counts beside the new one.
const rotationOverlap = 24 * time.Hour

// replaceResource serves PUT …/{kind}/{id}.
func (h *handler) replaceResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, err := k.fields.Replace(sent, document.Identity{Name: k.idField, Path: r.id})
	if err != nil {
		return err
	}
	return h.changeResource(w, r, k, idempotencyKey{}, func(document.Content) (document.Content, error) { return maps.Clone(content), nil })
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
	return h.changeResource(w, r, k, key.of(r, text), func(before document.Content) (document.Content, error) {
		return k.fields.Patch(before, sent, document.Identity{Name: k.idField, Path: r.id})
	})
}

// changeResource edits the resource of the path, as it is when it is written, and answers
// with it. A change with an idempotency key happens once.
func (h *handler) changeResource(
	w http.ResponseWriter, r *request, k *resourceKind, key idempotencyKey, edit func(document.Content) (document.Content, error),
) error {
	ifMatch, err := r.writePrecondition()
	if err != nil {
		return err
	}
	changed, err := k.of(r.site).Change(r.Context(), r.id, func(resource webhook.Resource) (webhook.Resource, error) {
		own := keptOf(resource)
		if _, used, err := key.usedIn(own.Keys); err != nil || used {
			return resource, err
		}
		err := ifMatch.checkResource(resource)
		if err == nil {
			resource.Content, err = edit(resource.Content)
		}
		if err == nil && key.key != "" {
			own.Keys = key.addTo(own.Keys, resource.Generation+1, h.Now())
			resource.Kept, err = own.keep()
		}
		return resource, err
	})
	if err != nil {
		return err
	}
	return r.respondResource(w, http.StatusOK, k, changed, "")
}

// deleteResource serves DELETE …/{kind}/{id}. Contract 4.2: permanently.
func (h *handler) deleteResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	ifMatch, err := r.writePrecondition()
	if err != nil {
		return err
	}
	if err := k.of(r.site).Delete(r.Context(), r.id, ifMatch.checkResource); err != nil {
		return err
	}
	return r.respondEmpty(w, http.StatusNoContent)
}

// rotateSecret serves POST …/webhook/{id}/rotate-secret.
func (h *handler) rotateSecret(w http.ResponseWriter, r *request) error {
	ifMatch, err := r.writePrecondition()
	if err != nil {
		return err
	}
	if len(r.Header.Values(idempotencyHeader)) > 0 {
		return fault.Faults{{In: fault.Header, At: idempotencyHeader, Code: fault.CodeInvalidHeader, Detail: "a secret is told once, so this cannot be repeated with the same answer; send If-Match to do it once"}}
	}
	if _, _, err := r.readOptions(w, nil); err != nil {
		return err
	}
	rotated, secret, err := r.site.Webhooks.Rotate(r.Context(), r.id, h.Now().Add(rotationOverlap), ifMatch.checkResource)
	if err != nil {
		return err
	}
	return r.respondResource(w, http.StatusOK, webhooks, rotated, secret)
}

// writePrecondition is that of a write without parameters.
func (r *request) writePrecondition() (etags, error) {
	if err := list.ReadNone(r.query); err != nil {
		return etags{}, err
	}
	return r.precondition()
}
