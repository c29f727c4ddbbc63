package fhir

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// create plans POST …/{type}. R4 http.html#create: the server chooses the id.
func (h *handler) create(w http.ResponseWriter, r *request) (stepFunc, error) {
	if err := h.parseProjection(r); err != nil {
		return nil, err
	}
	sent, err := r.readResource(w)
	if err != nil {
		return nil, err
	}
	created, err := r.creation(sent, store.MethodPost)
	if err != nil {
		return nil, err
	}
	if criteria := r.Header.Values("If-None-Exist"); len(criteria) > 0 {
		return h.conditionalCreate(r, created, criteria)
	}
	return singleStep(created), nil
}

// creation returns the step that creates a record under a new id.
func (r *request) creation(sent body, method store.Method) (step, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return step{}, err
	}
	created := step{isNew: true, op: store.Op{
		Key:    store.Key{Type: r.kind.Name, ID: id.String()},
		Method: method,
		If:     store.Precondition{Absent: true},
	}}
	created.putBody(sent)
	return created, nil
}

// update plans PUT …/{id}. R4 http.html#update.
func (h *handler) update(w http.ResponseWriter, r *request) (stepFunc, error) {
	if err := h.parseProjection(r); err != nil {
		return nil, err
	}
	conditions, err := parsePreconditions(r.Header)
	if err != nil {
		return nil, err
	}
	sent, err := r.readResource(w)
	if err != nil {
		return nil, err
	}
	if err := r.checkID(sent); err != nil {
		return nil, err
	}
	put := step{op: store.Op{Key: r.key(), Method: store.MethodPut}}
	put.putBody(sent)
	switch {
	case conditions.absent:
		return func(failed error) (step, error) {
			if failed != nil {
				return step{}, failed
			}
			return r.putAbsent(put)
		}, nil
	case conditions.ifMatch.Given:
		return r.putMatching(put, conditions.ifMatch), nil
	default:
		return r.put(put), nil
	}
}

// delete plans DELETE …/{id}. Without If-Match, it also succeeds if the record is deleted already or
// never existed. R4 http.html#delete.
func (h *handler) delete(_ http.ResponseWriter, r *request) (stepFunc, error) {
	if err := h.parseProjection(r); err != nil {
		return nil, err
	}
	conditions, err := parsePreconditions(r.Header)
	if err != nil {
		return nil, err
	}
	if conditions.absent {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match is not supported on a delete; omit the header"}
	}
	return r.ifMatch(step{op: deleteOp(r.key())}, conditions.ifMatch), nil
}

func deleteOp(key store.Key) store.Op {
	return store.Op{Kind: store.Delete, Key: key, Method: store.MethodDelete}
}

// checkID compares the ids in body and path. Ids that differ only in case are the same (contract
// 2.2).
func (r *request) checkID(sent body) error {
	id := sent.resource.ID
	switch {
	case id == "" && sent.dialect.idFromPath:
		return nil
	case id == "":
		return r.idError("the resource has no id; send the id of the path, " + r4.Quote(r.id))
	case !strings.EqualFold(id, r.id):
		return r.idError("the resource has the id " + r4.Quote(id) + ", but the path has the id " + r4.Quote(r.id) + "; send the same id in both")
	}
	return nil
}

func (r *request) idError(diagnostics string) error {
	return &invalidError{code: r4.CodeInvalidID, diagnostics: diagnostics, expression: r.kind.Name + ".id"}
}

// put plans an update of the record in the path. If the record does not exist, put creates it on a
// site with UpdateCreate, and fails on a site without.
func (r *request) put(put step) stepFunc {
	return func(failed error) (step, error) {
		switch {
		case failed == nil, store.IsConflict(failed): // on a conflict, a concurrent write has created the record
			put.op.If = store.Precondition{Present: true}
			return put, nil
		case store.IsAbsent(failed) && r.site.UpdateCreate:
			return r.putAbsent(put)
		case errors.Is(failed, store.ErrNotFound):
			return step{}, r.dialect.updateCreateRefused
		default:
			return step{}, failed
		}
	}
}

// putAbsent returns the step that creates the record in the path, or an error without UpdateCreate.
func (r *request) putAbsent(put step) (step, error) {
	if !r.site.UpdateCreate {
		current, err := r.site.Store.Get(r.Context(), put.op.Key)
		switch {
		case err == nil:
			err = &store.PreconditionError{Key: current.Key, Current: &current}
		case errors.Is(err, store.ErrNotFound):
			err = r.dialect.updateCreateRefused
		}
		return step{}, err
	}
	if err := r.authorize("create"); err != nil {
		return step{}, err
	}
	put.op.If = store.Precondition{Absent: true}
	return put, nil
}

// putMatching plans an update of the record if it has one of the versions. If the record is deleted
// and its tombstone has one of the versions, the write creates it again. If-Match: * does not match a
// tombstone. R4 http.html#delete.
func (r *request) putMatching(put step, versions web.ETags) stepFunc {
	update := r.ifMatch(put, versions)
	return func(failed error) (step, error) {
		write, failed := update(failed)
		if !store.IsConflict(failed) || versions.Any {
			return write, failed
		}
		_, err := r.site.Store.Get(r.Context(), put.op.Key)
		var deleted *store.DeletedError
		if !errors.As(err, &deleted) || !versions.MatchWeak(etag(deleted.Version)) {
			return step{}, failed
		}
		back, err := r.putAbsent(put)
		back.op.If.Version = deleted.Version
		return back, err
	}
}

// ifMatch plans a write if the record has one of the versions. If versions is not given, the write
// has no precondition. If-Match: * fails for an absent record too (RFC 9110 §13.1.1).
func (r *request) ifMatch(write step, versions web.ETags) stepFunc {
	return func(failed error) (step, error) {
		if versions.Any && store.IsAbsent(failed) {
			failed = &store.PreconditionError{Key: write.op.Key}
		}
		if failed != nil {
			return step{}, failed
		}
		var err error
		write.op.If, err = r.precondition(versions)
		return write, err
	}
}

// respondWritten responds to a create, an update or a patch.
func respondWritten(w http.ResponseWriter, r *request, done store.Result) error {
	status, issue := writeStatuses[done.Outcome], information("updated", "the record is updated")
	rec := done.Record
	switch done.Outcome {
	case store.Created:
		issue = information("created", "the record is created")
	case store.Unchanged:
		if r.Method == http.MethodPost { // a conditional create
			issue = information("unchanged", "no change: the response describes the record that matches the criteria")
			break
		}
		issue = information("unchanged", "no change: the new value equals the stored resource, so versionId stays "+strconv.FormatInt(rec.Version, 10))
	}
	w.Header().Set("Location", r.versionURL(rec)) // after an update too, because HAPI's client reads the version from it
	r.setVersion(w, rec)
	if r.Method == http.MethodPatch && r.authorizeGet(rec.Key) != nil {
		return r.respondEmpty(w, status) // it has elements that the caller did not send
	}
	switch parsePreferences(r.Header).returned {
	case returnMinimal:
		return r.respondEmpty(w, status)
	case returnOutcome:
		return r.respondOutcome(w, status, issue)
	}
	body, err := render(nil, rec, r.projection)
	if err != nil {
		return err
	}
	return r.respond(w, status, body)
}

// noMatch is the message of a conditional delete without a match.
const noMatch = "no record matches the criteria, so nothing was deleted"

func respondDeleted(w http.ResponseWriter, r *request, done store.Result) error {
	if done.Record.Version != 0 {
		w.Header().Set("ETag", etag(done.Record.Version).String())
	}
	statusText, issue := "OK", information("deleted", "the record is deleted")
	if r.id == "" && done.Outcome == store.Unchanged { // a conditional delete
		statusText, issue = "OK: "+noMatch, information("no_match", noMatch)
	}
	if r.dialect.deleteAcknowledgment && !r.inBundle { // an entry of a Bundle can only have a resource
		return r.respond(w, http.StatusOK, []byte(`{"status":200,"statusText":"`+statusText+`"}`))
	}
	return r.respondOutcome(w, http.StatusOK, issue)
}
