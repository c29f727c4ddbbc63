package fhir

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// criteriaClaimTime is how long a record that was created because no other met
// some criteria keeps those to itself: longer than replicas take to find each
// other's records.
const criteriaClaimTime = time.Minute

// multipleMatchesError says that criteria choose more than one record.
type multipleMatchesError struct{ criteria string }

func (e *multipleMatchesError) Error() string {
	return "more than one record matches " + r4.Quote(e.criteria) + "; give criteria that choose one"
}

// idTakenError says that a record of the id in a body exists and is not the one
// that the criteria ask for.
type idTakenError struct{ key store.Key }

func (e *idTakenError) Error() string {
	return "no record matches the criteria, and " + e.key.Type + "/" + e.key.ID + " is another one; leave the id out to create a new one"
}

// createUnlessFound plans a conditional create: no match creates, one match is
// answered, several are refused. R4 http.html#ccreate. Creates under the same
// criteria at the same time, on whatever replica, make one record: each claims the
// criteria with its write, and the loser is answered with the winner's record.
func (h *handler) createUnlessFound(r *request, created step, header []string) (decision, error) {
	values, err := web.ParseQuery(r.criteriaIn(strings.Join(header, "&")))
	if err != nil {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Exist is no query string: " + err.Error()}
	}
	criteria, err := h.criteria(r, search.WithoutPresentation(values))
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.choose(criteria, failed)
		if err != nil {
			return step{}, err
		}
		if match != nil {
			return step{found: match}, nil
		}
		return h.claiming(r, created, criteria), nil
	}, nil
}

// criteriaIn is the query string in a value of If-None-Exist: it, or the address of a search
// of the type, as HAPI's client sends it.
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

// updateChosen plans PUT …/{type}?criteria: the record that matches is updated,
// and created when there is none. R4 http.html#cond-update.
func (h *handler) updateChosen(w http.ResponseWriter, r *request) (decision, error) {
	asked, criteria, err := h.chosenBy(r)
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
		match, err := r.choose(criteria, failed)
		switch {
		case err != nil:
			return step{}, err
		case match == nil:
			return h.createChosen(r, created, criteria, asked)
		case sent.resource.ID != "" && !strings.EqualFold(sent.resource.ID, match.Key.ID):
			return step{}, r.wrongID("the id of the resource, " + r4.Quote(sent.resource.ID) + ", is not that of the record which matches, " + r4.Quote(match.Key.ID))
		}
		if err := asked.check(*match); err != nil {
			return step{}, err
		}
		updated := created
		updated.op.Key, updated.op.If, updated.isNew = match.Key, exactly(*match), false
		return updated, nil
	}, nil
}

// createChosen is the step of a conditional update that found no match.
func (h *handler) createChosen(r *request, created step, criteria search.Query, asked conditions) (step, error) {
	if asked.ifMatch.given {
		return step{}, &store.PreconditionError{Key: r.key()}
	}
	if err := r.authorize("create"); err != nil {
		return step{}, err
	}
	id := created.sent.resource.ID
	if id == "" {
		return h.claiming(r, created, criteria), nil
	}
	if !r.site.UpdateCreate {
		return step{}, r.wrongID("no record matches, and this site chooses the ids of new records itself; leave the id out")
	}
	// What the criteria do not choose is another record, which must not be lost.
	created.op.Key.ID, created.isNew = id, false
	current, err := r.site.Store.Get(r.Context(), created.op.Key)
	switch {
	case err == nil && criteria.HoldsFor(Extract(r.kind.Name, current.Body.JSON)): // created a moment ago
		created.op.Key, created.op.If = current.Key, exactly(current)
		return created, nil
	case err == nil:
		return step{}, &idTakenError{key: current.Key}
	case !isAbsent(err):
		return step{}, err
	}
	return h.claiming(r, created, criteria), nil
}

// patchChosen plans PATCH …/{type}?criteria. R4 http.html#patch.
func (h *handler) patchChosen(w http.ResponseWriter, r *request) (decision, error) {
	asked, criteria, err := h.chosenBy(r)
	if err != nil {
		return nil, err
	}
	patch, err := r.readPatch(w)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.choose(criteria, failed)
		if err == nil && match == nil {
			err = store.ErrNotFound
		}
		if err != nil {
			return step{}, err
		}
		if err := asked.check(*match); err != nil {
			return step{}, err
		}
		return r.applyPatch(patch, *match)
	}, nil
}

// removeChosen plans DELETE …/{type}?criteria. R4 http.html#3.1.0.7.1: no match
// is as good as one that is deleted already.
func (h *handler) removeChosen(_ http.ResponseWriter, r *request) (decision, error) {
	asked, criteria, err := h.chosenBy(r)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		match, err := r.choose(criteria, failed)
		switch {
		case err != nil:
			return step{}, err
		case match == nil && asked.ifMatch.given:
			return step{}, &store.PreconditionError{Key: r.key()}
		case match == nil:
			return step{found: &store.Record{}}, nil
		}
		if err := asked.check(*match); err != nil {
			return step{}, err
		}
		op := deletion(match.Key)
		op.If = exactly(*match)
		return step{op: op}, nil
	}, nil
}

// chosenBy reads what says which record a conditional interaction is about: the
// criteria in the query string, and the headers.
func (h *handler) chosenBy(r *request) (conditions, search.Query, error) {
	asked, err := parseConditions(r.Header)
	if err != nil {
		return conditions{}, search.Query{}, err
	}
	if asked.absent && r.Method != http.MethodPut {
		return conditions{}, search.Query{}, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match makes sense on a read and on a PUT only"}
	}
	criteria, err := h.criteria(r, search.WithoutPresentation(r.query))
	return asked, criteria, err
}

// criteria checks criteria, and that the caller may search by them.
func (h *handler) criteria(r *request, values url.Values) (search.Query, error) {
	criteria, err := search.ParseCriteria(values, h.searchOptions(r))
	if err == nil {
		err = r.authorize("list")
	}
	criteria.Count = 2
	return criteria, err
}

// choose finds the record that criteria choose, nil when there is none. It is told
// why the last step failed: it met another write, which is what to look for now.
func (r *request) choose(criteria search.Query, failed error) (*store.Record, error) {
	var claimed *store.ClaimError
	switch {
	case failed == nil:
	case errors.As(failed, &claimed):
		winner, err := r.site.Store.Get(r.Context(), claimed.Holder)
		switch {
		case err == nil && criteria.HoldsFor(Extract(r.kind.Name, winner.Body.JSON)):
			return &winner, nil
		case err == nil:
			return nil, failed // the winner was changed since and matches no more
		case !isAbsent(err):
			return nil, err
		}
	case !isConflict(failed):
		return nil, failed
	}
	if failed != nil { // what is searched here may know of the other write a moment later
		if err := web.Sleep(r.Context(), poll); err != nil {
			return nil, err
		}
	}
	page, err := r.matches(criteria, nil, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case len(page.Records) == 0:
		return nil, nil
	case len(page.Records) == 1 && page.Next == nil: // a page has fewer records where they are large
		return &page.Records[0], nil
	default:
		return nil, &multipleMatchesError{criteria: criteria.Canonical()}
	}
}

// claiming makes a creation claim the criteria that no record met, if it meets
// them itself.
func (h *handler) claiming(r *request, created step, criteria search.Query) step {
	if criteria.HoldsFor(Extract(r.kind.Name, created.op.Body.JSON)) {
		line := "If-None-Exist " + r.kind.Name + "?" + criteria.Criteria()
		created.op.Claims = []store.Claim{{Line: line, Expires: h.Now().Add(criteriaClaimTime).Truncate(time.Millisecond)}}
	}
	return created
}
