package ahds

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// create serves POST …/{kind}. A request that is repeated with the same id or Idempotency-Key
// creates nothing and gets the first version of the record, with status 200 instead of 201.
func (h *handler) create(w http.ResponseWriter, r *request, k *kind) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	rec, outcome, err := h.createFrom(r, k, sent, key)
	if err != nil {
		return err
	}
	w.Header().Set("Location", r.site.BaseURL+"/"+k.segment+"/"+rec.Key.ID)
	return h.respondWritten(w, r, writeStatuses[outcome], k, rec, nil)
}

// createFrom creates a record from the object that a client sent. Errors: fielderror.Errors, those
// of createOnce.
func (h *handler) createFrom(r *request, k *kind, sent schema.Object, key idempotencyKey) (store.Record, store.Outcome, error) {
	content, id, err := k.fields.Create(sent, schema.Identity{Name: k.idField})
	if err := k.checked(content, err); err != nil {
		return store.Record{}, 0, err
	}
	next, err := k.applyWrite(id, stored{}, write{sent: sent, content: content, seen: true, by: r.caller}, h.Now())
	if err != nil {
		return store.Record{}, 0, err
	}
	next.service.Fingerprint = k.fingerprint(content)
	return h.createOnce(r, k, id, next, key)
}

// checked adds the errors of combinations of fields to err, which has the errors of single fields.
func (k *kind) checked(content schema.Content, err error) error {
	if k.check == nil {
		return err
	}
	var errs fielderror.Errors
	if err != nil && !errors.As(err, &errs) {
		return err
	}
	return append(errs, k.check(content)...).Err()
}

// createOnce creates a record, or returns the first version of the record that the same request
// created before. Errors: *keyReusedError, *idTakenError, those of the store.
func (h *handler) createOnce(r *request, k *kind, id string, next stored, key idempotencyKey) (store.Record, store.Outcome, error) {
	chosen := id != ""
	if !chosen {
		made, err := uuid.NewV7()
		if err != nil {
			return store.Record{}, 0, err
		}
		id = made.String()
	}
	op := store.Op{Kind: store.Put, Key: k.key(id), Method: store.MethodPost, If: store.Precondition{Absent: true}}
	var err error
	if op.Body, err = k.encode(next); err != nil {
		return store.Record{}, 0, err
	}
	if claims := h.claims(k, next, key.claims(h.Now())); len(claims) > 0 {
		op.Claims = claims
	}
	for {
		results, err := r.site.Store.Write(r.Context(), []store.Op{op})
		if err == nil {
			return results[0].Record, store.Created, nil
		}
		holder, found := op.Key, chosen && store.IsConflict(err)
		if refused := new(store.ClaimError); errors.As(err, &refused) && isKeyClaim(refused.Claim) {
			holder, found = refused.Holder, true
		}
		if !found {
			return store.Record{}, 0, err
		}
		rec, err := r.site.Store.Get(r.Context(), holder)
		if err == nil {
			rec, err = h.madeBefore(r, k, rec, next, op.Key, chosen)
			return rec, store.Unchanged, err
		}
		if !store.IsAbsent(err) {
			return store.Record{}, 0, err
		}
		// Another request is about to create the record, or the record has just been deleted.
		if err := web.Sleep(r.Context(), poll); err != nil {
			return store.Record{}, 0, err
		}
	}
}

// madeBefore returns the first version of rec, which exists already, if the same request created it
// before. next and key are the record that the request would create and its key. chosen is set if the
// client chose the id. Errors: *keyReusedError, *idTakenError if another request created rec.
func (h *handler) madeBefore(r *request, k *kind, rec store.Record, next stored, key store.Key, chosen bool) (store.Record, error) {
	sameID := strings.EqualFold(rec.Key.ID, key.ID)
	s, err := k.decodeOf(rec)
	switch {
	case err != nil:
		return store.Record{}, err
	case chosen && !sameID:
		return store.Record{}, &keyReusedError{}
	case s.service.Fingerprint == next.service.Fingerprint:
		return firstVersion(r, rec)
	}
	first, same, err := k.createdAs(r, rec, s.service.Fingerprint, next)
	switch {
	case err != nil:
		return store.Record{}, err
	case same:
		return first, nil
	case !sameID:
		return store.Record{}, &keyReusedError{}
	default:
		return store.Record{}, &idTakenError{id: key.ID}
	}
}

// createdAs returns the first version of rec, and whether its content is the same JSON value as that of next.
// fingerprint is that of the content with which rec was created. same is false if the first version is no
// longer stored, or if rec has too many versions to read them for a request that will probably fail.
func (k *kind) createdAs(r *request, rec store.Record, fingerprint string, next stored) (first store.Record, same bool, err error) {
	if rec.Version > versionsPerPage {
		return store.Record{}, false, nil
	}
	if first, err = firstVersion(r, rec); err != nil {
		return store.Record{}, false, err
	}
	made, err := k.decode(first.Body.JSON)
	if err != nil {
		return store.Record{}, false, err
	}
	return first, k.fingerprint(made.content) == fingerprint && sameValue(k.fields, made.content, next.content), nil
}

// versionsPerPage is the size of a page of a history, in versions. A record rarely has more.
const versionsPerPage = 100

// firstVersion returns the version with which a record was created, or created again after its last
// deletion. If that version has been removed from the history, firstVersion returns rec.
func firstVersion(r *request, rec store.Record) (store.Record, error) {
	query := store.HistoryQuery{Key: rec.Key, Deletions: true, Count: versionsPerPage}
	for first := rec; ; {
		page, err := r.site.Store.History(r.Context(), query)
		if err != nil {
			return store.Record{}, err
		}
		for _, version := range page.Records {
			if version.Deleted {
				return first, nil
			}
			first = version
		}
		if query.After = page.Next; query.After != nil {
			continue
		}
		if first.Version > 1 {
			return rec, nil
		}
		return first, nil
	}
}

// decodeOf parses a record of the kind. Errors: *keyReusedError if it is of another kind.
func (k *kind) decodeOf(rec store.Record) (stored, error) {
	if rec.Key.Type != k.recordType {
		return stored{}, &keyReusedError{}
	}
	return k.decode(rec.Body.JSON)
}
