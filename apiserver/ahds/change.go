package ahds

import (
	"maps"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// replace serves PUT …/{kind}/{id}.
func (h *handler) replace(w http.ResponseWriter, r *request, k *kind) error {
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, err := k.fields.Replace(sent, document.Identity{Name: k.idField, Path: r.id})
	if err := k.checked(content, err); err != nil {
		return err
	}
	rec, err := h.change(r, k, store.MethodPut, idempotencyKey{}, func(rec store.Record, before stored, matched bool) (stored, error) {
		// What was read and is put back has the times that it was read with.
		seen := matched || document.String(sent.Get("updatedAt")) == document.Stamp(rec.Updated)
		return k.settle(rec.Key.ID, before, write{sent: sent, content: maps.Clone(content), seen: seen}, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondRecord(w, r, http.StatusOK, k, rec)
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
		content, err := k.fields.Patch(before.content, sent, document.Identity{Name: k.idField, Path: r.id})
		if err := k.checked(content, err); err != nil {
			return stored{}, err
		}
		return k.settle(rec.Key.ID, before, write{sent: sent, content: content}, h.Now())
	})
	if err != nil {
		return err
	}
	return h.respondRecord(w, r, http.StatusOK, k, rec)
}

// remove serves DELETE …/{kind}/{id}. Contract 4.2: permanently.
func (h *handler) remove(w http.ResponseWriter, r *request, k *kind) error {
	if err := list.ReadNone(r.query); err != nil {
		return err
	}
	ifMatch, err := r.precondition()
	if err != nil {
		return err
	}
	for {
		rec, err := r.site.Store.Get(r.Context(), k.key(r.id))
		if err == nil {
			err = ifMatch.check(rec)
		}
		if err != nil {
			return err
		}
		_, err = r.site.Store.Write(r.Context(), []store.Op{{Kind: store.Purge, Key: rec.Key, Method: store.MethodDelete, If: exactly(rec)}})
		if err == nil {
			return r.respondEmpty(w, http.StatusNoContent)
		}
		if err := r.again(err); err != nil {
			return err
		}
	}
}

// edit makes of a record what it is to become; matched tells that If-Match named it.
type edit func(rec store.Record, before stored, matched bool) (stored, error)

// change edits the record of the path, again if another write comes in between. A change
// with an idempotency key happens once: repeated, it is answered as it was.
func (h *handler) change(r *request, k *kind, method store.Method, key idempotencyKey, edit edit) (store.Record, error) {
	if err := list.ReadNone(r.query); err != nil {
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
		if version, used, err := key.usedIn(before.kept.Keys); err != nil || used {
			return h.versionOf(r, rec, version, err)
		}
		if err := ifMatch.check(rec); err != nil {
			return store.Record{}, err
		}
		next, err := edit(rec, before, ifMatch.given)
		if err != nil {
			return store.Record{}, err
		}
		next.kept.Made = before.kept.Made
		next.kept.Keys = key.addTo(before.kept.Keys, rec.Version+1, h.Now())
		op := store.Op{Kind: store.Put, Key: rec.Key, Method: method, If: exactly(rec)}
		if op.Body, err = k.encode(next); err != nil {
			return store.Record{}, err
		}
		op.Claims = h.claims(k, next, keyClaims(rec.Claims, h.Now()))
		results, err := r.site.Store.Write(r.Context(), []store.Op{op})
		if err == nil {
			return results[0].Record, nil
		}
		if err := r.again(err); err != nil {
			return store.Record{}, err
		}
	}
}

// claims are all that a record holds after a write, those of idempotency keys first. Nil
// leaves them as they are.
func (h *handler) claims(k *kind, s stored, ofKeys []store.Claim) []store.Claim {
	if k.claims == nil {
		return ofKeys
	}
	return append(append([]store.Claim{}, ofKeys...), k.claims(s, h.Now())...)
}

// exactly is the precondition that a record is as it was read.
func exactly(rec store.Record) store.Precondition {
	return store.Precondition{Version: rec.Version, UID: rec.UID}
}

// again returns nil where a write failed because another one came in between, and there
// is time to try again.
func (r *request) again(failed error) error {
	if !isConflict(failed) {
		return failed
	}
	return r.Context().Err()
}
