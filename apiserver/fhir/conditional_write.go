package fhir

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// criteriaClaimTime is how long a conditionally created record holds a claim to its criteria. It is
// longer than the time after which searches on all replicas find the record.
const criteriaClaimTime = time.Minute

// multipleMatchesError is the error of criteria that match more than one record.
type multipleMatchesError struct{ criteria string }

func (e *multipleMatchesError) Error() string {
	return "more than one record matches " + r4.Quote(e.criteria) + "; give criteria that match only one"
}

// idTakenError is the error of a conditional update without a match whose body has the id of
// another record.
type idTakenError struct{ key store.Key }

func (e *idTakenError) Error() string {
	return "no record matches the criteria, and the body has the id of another record, " + e.key.Type + "/" + e.key.ID + "; omit the id to create a new record"
}

// conditionalCreate plans a conditional create. Without a match it creates the record, with one
// match it answers with that record, and with several matches it fails. R4 http.html#ccreate.
// Concurrent creates with the same criteria make one record, on all replicas, if their records match
// the criteria: each write claims the criteria, and a write that does not get the claim answers with
// the record of the write that holds it.
func (h *handler) conditionalCreate(r *request, created step, header []string) (stepFunc, error) {
	values, err := web.ParseQuery(r.criteriaIn(strings.Join(header, "&")))
	if err != nil {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Exist: the query string is invalid: " + err.Error()}
	}
	criteria, err := h.criteria(r, search.WithoutPresentation(values))
	if err != nil {
		return nil, criteriaError("", "If-None-Exist", err)
	}
	return func(failed error) (step, error) {
		match, err := r.findMatch(criteria, failed)
		if err != nil {
			return step{}, err
		}
		if match != nil {
			return step{found: match}, nil
		}
		return h.claimCriteria(r, created, criteria), nil
	}, nil
}

// criteriaIn returns the query string in a value of If-None-Exist. The value is a query string or,
// from HAPI's client, the address of a search of the type.
func (r *request) criteriaIn(value string) string {
	address, query, found := strings.Cut(value, "?")
	if !found {
		return value
	}
	for _, base := range r.bases() {
		if below, ok := strings.CutPrefix(address, base+"/"); ok {
			address = below
			break
		}
	}
	address = strings.TrimPrefix(address, "/")
	if kind, known := r4.TypeOf(address); address != "" && (!known || kind.Name != r.kind.Name) {
		return value
	}
	return query
}

// conditionalUpdate plans PUT …/{type}?criteria. It updates the match, or creates a record if there is
// no match. R4 http.html#cond-update.
func (h *handler) conditionalUpdate(w http.ResponseWriter, r *request) (stepFunc, error) {
	conditions, criteria, err := h.parseConditional(r)
	if err != nil {
		return nil, err
	}
	sent, err := r.readResource(w)
	if err != nil {
		return nil, err
	}
	created, err := r.creation(sent, store.MethodPut)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.findMatch(criteria, failed)
		switch {
		case err != nil:
			return step{}, err
		case match == nil:
			return h.createWithoutMatch(r, created, criteria, conditions)
		case sent.resource.ID != "" && !strings.EqualFold(sent.resource.ID, match.Key.ID):
			return step{}, r.idError("the resource has the id " + r4.Quote(sent.resource.ID) + ", but the record that matches the criteria has the id " + r4.Quote(match.Key.ID) + "; send that id or omit it")
		}
		if err := conditions.check(*match); err != nil {
			return step{}, err
		}
		updated := created
		updated.op.Key, updated.op.If, updated.isNew = match.Key, store.UnchangedSince(*match), false
		return updated, nil
	}, nil
}

// createWithoutMatch returns the step of a conditional update without a match.
func (h *handler) createWithoutMatch(r *request, created step, criteria search.Query, conditions preconditions) (step, error) {
	if conditions.ifMatch.Given {
		return step{}, &store.PreconditionError{Key: r.key()}
	}
	if err := r.authorize("create"); err != nil {
		return step{}, err
	}
	id := created.sent.resource.ID
	if id == "" {
		return h.claimCriteria(r, created, criteria), nil
	}
	if !r.site.UpdateCreate {
		return step{}, r.idError("no record matches the criteria, and this site makes the ids of new records itself (fhir.updateCreate: false); omit the id")
	}
	// A record with this id that does not match the criteria is another record. It must not be
	// overwritten.
	created.op.Key.ID, created.isNew = id, false
	current, err := r.site.Store.Get(r.Context(), created.op.Key)
	switch {
	case err == nil && criteria.Matches(extract.Values(r.kind.Name, current.Body.JSON)): // created since the search
		created.op.Key, created.op.If = current.Key, store.UnchangedSince(current)
		return created, nil
	case err == nil:
		return step{}, &idTakenError{key: current.Key}
	case !store.IsAbsent(err):
		return step{}, err
	}
	return h.claimCriteria(r, created, criteria), nil
}

// conditionalPatch plans PATCH …/{type}?criteria. R4 http.html#patch.
func (h *handler) conditionalPatch(w http.ResponseWriter, r *request) (stepFunc, error) {
	conditions, criteria, err := h.parseConditional(r)
	if err != nil {
		return nil, err
	}
	patch, err := r.readPatch(w)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.findMatch(criteria, failed)
		if err == nil && match == nil {
			err = store.ErrNotFound
		}
		if err != nil {
			return step{}, err
		}
		if err := conditions.check(*match); err != nil {
			return step{}, err
		}
		return r.applyPatch(patch, *match)
	}, nil
}

// conditionalDelete plans DELETE …/{type}?criteria. Without a match it succeeds, as if the record
// were deleted already, unless If-Match is given. R4 http.html#3.1.0.7.1.
func (h *handler) conditionalDelete(_ http.ResponseWriter, r *request) (stepFunc, error) {
	conditions, criteria, err := h.parseConditional(r)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.findMatch(criteria, failed)
		switch {
		case err != nil:
			return step{}, err
		case match == nil && conditions.ifMatch.Given:
			return step{}, &store.PreconditionError{Key: r.key()}
		case match == nil:
			return step{found: &store.Record{}}, nil
		}
		if err := conditions.check(*match); err != nil {
			return step{}, err
		}
		op := deleteOp(match.Key)
		op.If = store.UnchangedSince(*match)
		return step{op: op}, nil
	}, nil
}

// parseConditional returns the preconditions and the criteria of a conditional interaction.
func (h *handler) parseConditional(r *request) (preconditions, search.Query, error) {
	conditions, err := parsePreconditions(r.Header)
	if err != nil {
		return preconditions{}, search.Query{}, err
	}
	if conditions.absent && r.Method != http.MethodPut {
		return preconditions{}, search.Query{}, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match is only supported on a read and on a PUT; omit the header"}
	}
	values := search.WithoutPresentation(r.query)
	if len(values) == 0 {
		return preconditions{}, search.Query{}, search.Errors{{Problem: fmt.Sprintf(
			"%[1]s %[2]s needs an id in the path (`%[1]s /%[2]s/{id}`), or search criteria for a conditional %[3]s (`%[1]s /%[2]s?identifier={system}|{value}`); GET metadata lists the search parameters",
			r.Method, r.kind.Name, map[string]string{http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method])}}
	}
	criteria, err := h.criteria(r, values)
	return conditions, criteria, err
}

// criteria parses search criteria and checks that the caller may list the type.
func (h *handler) criteria(r *request, values url.Values) (search.Query, error) {
	criteria, err := search.ParseCriteria(values, h.searchOptions(r))
	if err == nil {
		err = r.authorize("list")
	}
	criteria.Count = 2
	return criteria, err
}

// criteriaError puts the place of criteria before each of the search.Errors in them, and makes them
// errors of a parameter, or of none if parameter is empty. It returns other errors unchanged.
func criteriaError(parameter, place string, err error) error {
	var wrong search.Errors
	if !errors.As(err, &wrong) {
		return err
	}
	placed := make(search.Errors, len(wrong))
	for i, each := range wrong {
		placed[i] = search.Error{Parameter: parameter, Problem: place + ": " + each.Error()}
	}
	return placed
}

// findMatch returns the record that matches the criteria, or nil. failed is the error of the last
// step. If a concurrent write caused it, findMatch looks for the record of that write. Errors:
// *multipleMatchesError, failed, those of finding the caller's rights and of the store.
func (r *request) findMatch(criteria search.Query, failed error) (*store.Record, error) {
	var claimed *store.ClaimError
	switch {
	case failed == nil:
	case errors.As(failed, &claimed):
		winner, err := r.site.Store.Get(r.Context(), claimed.Holder)
		switch {
		case err == nil && criteria.Matches(extract.Values(r.kind.Name, winner.Body.JSON)):
			return &winner, nil
		case err == nil:
			return nil, failed // the winner has been changed and no longer matches
		case !store.IsAbsent(err):
			return nil, err
		}
	case !store.IsConflict(failed):
		return nil, failed
	}
	if failed != nil { // the search may not find the concurrent write yet
		if err := web.Sleep(r.Context(), pollInterval); err != nil {
			return nil, err
		}
	}
	page, err := r.searchRecords(criteria, nil, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case len(page.Records) == 0:
		return nil, nil
	case len(page.Records) == 1 && page.Next == nil: // large records can end a page after one match
		return &page.Records[0], nil
	default:
		return nil, &multipleMatchesError{criteria: criteria.Canonical()}
	}
}

// claimCriteria adds a claim of the criteria to a creation, if the new record itself matches them.
func (h *handler) claimCriteria(r *request, created step, criteria search.Query) step {
	if criteria.Matches(created.op.Values()) {
		line := "If-None-Exist " + r.kind.Name + "?" + criteria.Criteria()
		created.op.Claims = []store.Claim{{Line: line, Expires: h.Now().Add(criteriaClaimTime).Truncate(time.Millisecond)}}
	}
	return created
}
