package ahds

import (
	"errors"
	"maps"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// replace serves PUT …/{kind}/{id}.
func (h *handler) replace(w http.ResponseWriter, r *request, k *kind) error {
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, text, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	rec, err := h.replaceWith(r, k, sent, key.of(r, text))
	if err != nil {
		return err
	}
	return h.respondWritten(w, r, http.StatusOK, k, rec, nil)
}

// replaceWith replaces the record of the path by the object that a client sent. Errors:
// fielderror.Errors, those of change.
func (h *handler) replaceWith(r *request, k *kind, sent schema.Object, key idempotencyKey) (store.Record, error) {
	content, err := k.fields.Replace(sent, schema.Identity{Name: k.idField, Path: r.id})
	if err := k.checked(content, err); err != nil {
		return store.Record{}, err
	}
	return h.change(r, k, store.MethodPut, key, func(rec store.Record, before stored, matched bool) (stored, error) {
		// A client that sends back the record that it read also sends updatedAt, which shows that
		// it knows the current version.
		seen := matched || schema.String(sent.Get("updatedAt")) == schema.Stamp(rec.Updated)
		return k.applyWrite(rec.Key.ID, before, write{sent: sent, content: maps.Clone(content), seen: seen, by: r.caller}, h.Now())
	})
}

// patch serves PATCH …/{kind}/{id}. RFC 7396.
func (h *handler) patch(w http.ResponseWriter, r *request, k *kind) error {
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, text, err := r.readObject(w, typeMergePatch, typeJSON)
	if err != nil {
		return err
	}
	rec, err := h.change(r, k, store.MethodPatch, key.of(r, text), func(rec store.Record, before stored, _ bool) (stored, error) {
		content, err := k.fields.Patch(before.content, sent, schema.Identity{Name: k.idField, Path: r.id})
		if err := k.checked(content, err); err != nil {
			return stored{}, err
		}
		if !k.fields.Sets(sent) {
			return stored{}, errNothingChanges
		}
		return k.applyWrite(rec.Key.ID, before, write{sent: sent, content: content, by: r.caller}, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondWritten(w, r, http.StatusOK, k, rec, nil)
}

// remove serves DELETE …/{kind}/{id}. The API cannot restore a deleted record. Contract 4.2.
func (h *handler) remove(w http.ResponseWriter, r *request, k *kind) error {
	if err := h.removeRecord(r, k); err != nil {
		return err
	}
	return r.respondEmpty(w, http.StatusNoContent)
}

// removeRecord deletes the record of the path. It retries after a conflict with another write.
func (h *handler) removeRecord(r *request, k *kind) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	ifMatch, err := r.precondition()
	if err != nil {
		return err
	}
	deletion := store.Purge
	if k.keepsDeletions {
		deletion = store.Delete
	}
	for {
		rec, err := r.site.Store.Get(r.Context(), k.key(r.id))
		if err == nil {
			err = checkIfMatch(ifMatch, etag(rec))
		}
		if err != nil {
			return err
		}
		_, err = r.site.Store.Write(r.Context(), []store.Op{{Kind: deletion, Key: rec.Key, Method: store.MethodDelete, If: store.UnchangedSince(rec)}})
		if err == nil {
			return nil
		}
		if err := r.retryConflict(err); err != nil {
			return err
		}
	}
}

// edit returns the record after a change. matched is set if the If-Match of the request has the ETag
// of the record. The value * does not count, because it matches every version. edit returns
// errNothingChanges to leave the record as it is. Other errors are those of validation and of package slot.
type edit func(rec store.Record, before stored, matched bool) (stored, error)

// errNothingChanges is the error of an edit that leaves the record as it is.
var errNothingChanges = errors.New("the request changes nothing")

// change edits the record of the path, or returns it if the edit leaves it as it is. It retries after
// a conflict with another write. A change with an idempotency key is applied once: a repeated request
// changes nothing and gets the version that the first request created (versionOf). A request that leaves
// the record as it is does not use its key. Errors: fielderror.Errors, *web.ETagError, *preconditionError,
// *keyReusedError, those of edit except errNothingChanges, and those of the store.
func (h *handler) change(r *request, k *kind, method store.Method, key idempotencyKey, edit edit) (store.Record, error) {
	if err := list.ParseNone(r.query); err != nil {
		return store.Record{}, err
	}
	ifMatch, err := r.precondition()
	if err != nil {
		return store.Record{}, err
	}
	for {
		rec, err := r.site.Store.Get(r.Context(), k.key(r.id))
		if err != nil {
			return store.Record{}, err
		}
		before, err := k.decode(rec.Body.JSON)
		if err != nil {
			return store.Record{}, err
		}
		if version, used, err := key.usedIn(before.service.Keys); err != nil || used {
			return h.versionOf(r, rec, version, err)
		}
		if key.created(rec, h.Now()) {
			return store.Record{}, &keyReusedError{}
		}
		if err := checkIfMatch(ifMatch, etag(rec)); err != nil {
			return store.Record{}, err
		}
		next, err := edit(rec, before, ifMatch.Given && !ifMatch.Any)
		if errors.Is(err, errNothingChanges) {
			return rec, nil
		}
		if err != nil {
			return store.Record{}, err
		}
		next.service.Fingerprint = before.service.Fingerprint
		next.service.Keys = key.addTo(before.service.Keys, rec.Version+1, h.Now())
		op := store.Op{Kind: store.Put, Key: rec.Key, Method: method, If: store.UnchangedSince(rec)}
		if op.Body, err = k.encode(next); err != nil {
			return store.Record{}, err
		}
		op.Claims = h.claims(k, next, keyClaims(rec.Claims, h.Now()))
		results, err := r.site.Store.Write(r.Context(), []store.Op{op})
		if err == nil {
			return results[0].Record, nil
		}
		if err := r.retryConflict(err); err != nil {
			return store.Record{}, err
		}
	}
}

// claims returns all claims of a record after a write, those of idempotency keys first. A nil
// result leaves the claims of the record unchanged.
func (h *handler) claims(k *kind, s stored, ofKeys []store.Claim) []store.Claim {
	if k.claims == nil {
		return ofKeys
	}
	return append(append([]store.Claim{}, ofKeys...), k.claims(s, h.Now())...)
}

// retryConflict returns nil if a write failed because of a concurrent write and may be retried.
// Otherwise it returns the error to respond with.
func (r *request) retryConflict(failed error) error {
	if !store.IsConflict(failed) {
		return failed
	}
	return r.Context().Err()
}
