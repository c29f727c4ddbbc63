package fhir

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// create plans POST …/{type}. R4 http.html#create: the server chooses the id.
func (h *handler) create(w http.ResponseWriter, r *request) (decision, error) {
	if err := h.takeShown(r); err != nil {
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
		return h.createUnlessFound(r, created, criteria)
	}
	return once(created), nil
}

// creation is the step that creates a record under a new id.
func (r *request) creation(sent body, method store.Method) (step, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return step{}, err
	}
	return step{sent: sent, isNew: true, op: store.Op{
		Kind:   store.Put,
		Key:    store.Key{Type: r.kind.Name, ID: id.String()},
		Method: method,
		Body:   sent.stored(),
		If:     store.Precondition{Absent: true},
	}}, nil
}

// update plans PUT …/{id}. R4 http.html#update.
func (h *handler) update(w http.ResponseWriter, r *request) (decision, error) {
	if err := h.takeShown(r); err != nil {
		return nil, err
	}
	asked, err := parseConditions(r.Header)
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
	put := step{sent: sent, op: store.Op{Kind: store.Put, Key: r.key(), Method: store.MethodPut, Body: sent.stored()}}
	switch {
	case asked.absent:
		return func(failed error) (step, error) {
			if failed != nil {
				return step{}, failed
			}
			return r.putAbsent(put)
		}, nil
	case asked.ifMatch.given:
		return r.putMatching(put, asked.ifMatch), nil
	default:
		return r.put(put), nil
	}
}

// remove plans DELETE …/{id}. R4 http.html#delete: deleting what is gone or never
// was succeeds too.
func (h *handler) remove(_ http.ResponseWriter, r *request) (decision, error) {
	if err := h.takeShown(r); err != nil {
		return nil, err
	}
	asked, err := parseConditions(r.Header)
	if err != nil {
		return nil, err
	}
	if asked.absent {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match makes no sense on a delete"}
	}
	return r.ifMatch(step{op: deletion(r.key())}, asked.ifMatch), nil
}

func deletion(key store.Key) store.Op {
	return store.Op{Kind: store.Delete, Key: key, Method: store.MethodDelete}
}

// checkID compares the ids of the body and the path. Ids that differ in case only
// are one (contract 2.2).
func (r *request) checkID(sent body) error {
	id := sent.resource.ID
	switch {
	case id == "" && sent.dialect.idFromPath:
		return nil
	case id == "":
		return r.wrongID("the resource has no id; for an update it must have that of the path, " + r4.Quote(r.id))
	case !strings.EqualFold(id, r.id):
		return r.wrongID("the id of the resource, " + r4.Quote(id) + ", is not that of the path, " + r4.Quote(r.id))
	}
	return nil
}

// wrongID says what is wrong with the id in a body.
func (r *request) wrongID(diagnostics string) error {
	return &invalidError{code: r4.CodeInvalidID, diagnostics: diagnostics, expression: r.kind.Name + ".id"}
}

// put updates the record or, where the site allows it, creates it.
func (r *request) put(put step) decision {
	return func(failed error) (step, error) {
		switch {
		case failed == nil, isConflict(failed): // somebody created it: there is something to update now
			put.op.If = store.Precondition{Present: true}
			return put, nil
		case isAbsent(failed) && r.site.UpdateCreate:
			return r.putAbsent(put)
		case errors.Is(failed, store.ErrNotFound):
			return step{}, r.dialect.updateCreateRefused
		default:
			return step{}, failed
		}
	}
}

// putAbsent creates the record, which must not exist, under the id of the path.
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

// putMatching updates the record if it is at one of the versions, and brings it back if the
// one that deleted it is. R4 http.html#delete.
func (r *request) putMatching(put step, versions etags) decision {
	update := r.ifMatch(put, versions)
	return func(failed error) (step, error) {
		write, failed := update(failed)
		if !isConflict(failed) || versions.any {
			return write, failed
		}
		_, err := r.site.Store.Get(r.Context(), put.op.Key)
		var deleted *store.DeletedError
		if !errors.As(err, &deleted) || !versions.match(deleted.Version) {
			return step{}, failed
		}
		back, err := r.putAbsent(put)
		back.op.If.Version = deleted.Version
		return back, err
	}
}

// ifMatch writes if the record is at one of the versions, if any are given.
// If-Match: * asks for any, so that an absent record fails the condition too (RFC
// 9110 §13.1.1).
func (r *request) ifMatch(write step, versions etags) decision {
	return func(failed error) (step, error) {
		if versions.any && isAbsent(failed) {
			failed = &store.PreconditionError{Key: write.op.Key}
		}
		if failed != nil {
			return step{}, failed
		}
		var err error
		write.op.If, err = versions.precondition(r)
		return write, err
	}
}

// answerWritten answers a create, an update or a patch.
func answerWritten(w http.ResponseWriter, r *request, done store.Result) error {
	status, said := http.StatusOK, information("updated", "the record is updated")
	rec := done.Record
	switch done.Outcome {
	case store.Created:
		status, said = http.StatusCreated, information("created", "the record is created")
	case store.Unchanged:
		said = information("unchanged", "no change: the request body has the same value as the stored resource, so versionId stays "+strconv.FormatInt(rec.Version, 10))
	}
	w.Header().Set("Location", r.versionURL(rec)) // after an update too: HAPI's client takes the version from it
	r.setVersion(w, rec)
	switch parsePreferences(r.Header).answer {
	case answerMinimal:
		return r.respondEmpty(w, status)
	case answerOutcome:
		return r.respondOutcome(w, status, said)
	}
	body, err := render(nil, rec, r.shown)
	if err != nil {
		return err
	}
	return r.respond(w, status, body)
}

// noMatch is what a conditional delete without a match says.
const noMatch = "no record matches the criteria, so nothing was deleted"

// answerDeleted answers a delete.
func answerDeleted(w http.ResponseWriter, r *request, done store.Result) error {
	if done.Record.Version != 0 {
		w.Header().Set("ETag", etag(done.Record.Version))
	}
	statusText, said := "OK", information("deleted", "the record is deleted")
	if r.id == "" && done.Outcome == store.Unchanged { // a conditional delete
		statusText, said = "OK: "+noMatch, information("no_match", noMatch)
	}
	if r.dialect.deleteAcknowledgment && !r.inBundle { // a bundle holds resources only
		return r.respond(w, http.StatusOK, []byte(`{"status":200,"statusText":"`+statusText+`"}`))
	}
	return r.respondOutcome(w, http.StatusOK, said)
}
