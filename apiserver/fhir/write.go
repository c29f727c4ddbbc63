package fhir

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// create serves POST …/{type}. R4 http.html#create: the server chooses the id.
func (h *handler) create(w http.ResponseWriter, r *request) error {
	sent, err := r.readResource(w)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	op := store.Op{
		Kind:   store.Put,
		Key:    store.Key{Type: r.kind.Name, ID: id.String()},
		Method: store.MethodPost,
		Body:   sent.stored(),
		If:     store.Precondition{Absent: true},
	}
	if criteria := r.Header.Values("If-None-Exist"); len(criteria) > 0 {
		return h.createUnlessFound(w, r, op, criteria)
	}
	done, err := write(r.Context(), r.site.Store, op)
	if err != nil {
		return err
	}
	return r.respondWritten(w, done)
}

// update serves PUT …/{id}. R4 http.html#update.
func (h *handler) update(w http.ResponseWriter, r *request) error {
	asked, err := parseConditions(r.Header)
	if err != nil {
		return err
	}
	sent, err := r.readResource(w)
	if err != nil {
		return err
	}
	if err := r.checkID(sent); err != nil {
		return err
	}
	op := store.Op{Kind: store.Put, Key: r.key(), Method: store.MethodPut, Body: sent.stored()}
	var done store.Result
	switch {
	case asked.absent:
		done, err = r.putAbsent(op)
	case asked.ifMatch.given:
		done, err = r.writeIfMatch(op, asked.ifMatch)
	default:
		done, err = r.put(op)
	}
	if err != nil {
		return err
	}
	return r.respondWritten(w, done)
}

// delete serves DELETE …/{id}. R4 http.html#delete: deleting what is gone or never
// was succeeds too.
func (h *handler) delete(w http.ResponseWriter, r *request) error {
	asked, err := parseConditions(r.Header)
	if err != nil {
		return err
	}
	if asked.absent {
		return &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match makes no sense on a delete"}
	}
	done, err := r.writeIfMatch(store.Op{Kind: store.Delete, Key: r.key(), Method: store.MethodDelete}, asked.ifMatch)
	if err != nil {
		return err
	}
	if done.Record.Version != 0 {
		w.Header().Set("ETag", etag(done.Record.Version))
	}
	if r.dialect.deleteAcknowledgment {
		return r.respond(w, http.StatusOK, []byte(`{"status":200,"statusText":"OK"}`))
	}
	return r.respondOutcome(w, http.StatusOK, information("deleted", "the record is deleted"))
}

// checkID compares the ids of the body and the path. Ids that differ in case only
// are one (contract 2.2).
func (r *request) checkID(sent body) error {
	id := sent.resource.ID
	invalid := func(diagnostics string) error {
		return &invalidError{code: r4.CodeInvalidID, diagnostics: diagnostics, expression: r.kind.Name + ".id"}
	}
	switch {
	case id == "" && sent.dialect.idFromPath:
		return nil
	case id == "":
		return invalid("the resource has no id; for an update it must have that of the path, " + r4.Quote(r.id))
	case !strings.EqualFold(id, r.id):
		return invalid("the id of the resource, " + r4.Quote(id) + ", is not that of the path, " + r4.Quote(r.id))
	}
	return nil
}

// put updates the record or, where the site allows it, creates it.
func (r *request) put(op store.Op) (store.Result, error) {
	for {
		op.If = store.Precondition{Present: true}
		done, err := write(r.Context(), r.site.Store, op)
		if !isAbsent(err) || !r.site.UpdateCreate {
			return done, err
		}
		done, err = r.putAbsent(op)
		if conflict := new(store.PreconditionError); !errors.As(err, &conflict) || r.Context().Err() != nil {
			return done, err
		}
		// Somebody created it in between: there is something to update now.
	}
}

// putAbsent creates the record, which must not exist, under the id of the path.
func (r *request) putAbsent(op store.Op) (store.Result, error) {
	if !r.site.UpdateCreate {
		current, err := r.site.Store.Get(r.Context(), op.Key)
		if err == nil {
			err = &store.PreconditionError{Key: current.Key, Current: &current}
		}
		return store.Result{}, err
	}
	if err := r.authorize("create"); err != nil {
		return store.Result{}, err
	}
	op.If = store.Precondition{Absent: true}
	return write(r.Context(), r.site.Store, op)
}

// writeIfMatch writes if the record is at one of the versions. If-Match: * asks for
// any, so that an absent record fails the condition too (RFC 9110 §13.1.1).
func (r *request) writeIfMatch(op store.Op, versions etags) (store.Result, error) {
	var err error
	if op.If, err = versions.precondition(r); err != nil {
		return store.Result{}, err
	}
	done, err := write(r.Context(), r.site.Store, op)
	if versions.any && isAbsent(err) {
		err = &store.PreconditionError{Key: op.Key}
	}
	return done, err
}

// write makes one operation.
func write(ctx context.Context, to store.Store, op store.Op) (store.Result, error) {
	results, err := to.Write(ctx, []store.Op{op})
	if err != nil {
		return store.Result{}, err
	}
	return results[0], nil
}

// respondWritten answers a create or an update.
func (r *request) respondWritten(w http.ResponseWriter, done store.Result) error {
	status, said := http.StatusOK, information("updated", "the record is updated")
	rec := done.Record
	switch done.Outcome {
	case store.Created:
		status, said = http.StatusCreated, information("created", "the record is created")
		w.Header().Set("Location", r.versionURL(rec))
	case store.Unchanged:
		said = information("unchanged", "the record is what was sent already; it stays at its version")
	}
	setVersion(w.Header(), rec)
	switch parsePreferences(r.Header).answer {
	case answerMinimal:
		return r.respondEmpty(w, status)
	case answerOutcome:
		return r.respondOutcome(w, status, said)
	}
	body, err := render(nil, rec, nil)
	if err != nil {
		return err
	}
	return r.respond(w, status, body)
}
