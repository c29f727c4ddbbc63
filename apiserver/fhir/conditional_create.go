package fhir

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	// criteriaClaimTime is how long a conditional create keeps its criteria to
	// itself: longer than replicas take to find each other's records.
	criteriaClaimTime = time.Minute
	// claimPoll is how often the record of a create under way is looked for.
	claimPoll = 10 * time.Millisecond
)

// multipleMatchesError says that criteria choose more than one record.
type multipleMatchesError struct{ criteria string }

func (e *multipleMatchesError) Error() string {
	return "more than one record matches " + r4.Quote(e.criteria) + "; give criteria that choose one"
}

// createUnlessFound serves a conditional create: no match creates, one match is
// answered, several are refused. R4 http.html#ccreate. Creates under the same
// criteria at the same time, on whatever replica, make one record: each claims the
// criteria with its write, and the loser is answered with the winner's record.
func (h *handler) createUnlessFound(w http.ResponseWriter, r *request, op store.Op, header []string) error {
	criteria, err := h.parseCriteria(r, header)
	if err != nil {
		return err
	}
	if err := r.authorize("list"); err != nil {
		return err
	}
	if criteria.HoldsFor(r4.Tokens(op.Body.JSON)) {
		line := "If-None-Exist " + r.kind.Name + "?" + criteria.Canonical()
		op.Claims = []store.Claim{{Line: line, Expires: h.Now().Add(criteriaClaimTime).Truncate(time.Millisecond)}}
	}
	criteria.Count = 2
	for {
		page, err := r.site.Store.Search(r.Context(), r.storeQuery(criteria, nil))
		if err != nil {
			return err
		}
		switch len(page.Records) {
		case 0:
		case 1:
			return r.respondFound(w, page.Records[0])
		default:
			return &multipleMatchesError{criteria: criteria.Canonical()}
		}
		done, err := write(r.Context(), r.site.Store, op)
		var claimed *store.ClaimError
		if !errors.As(err, &claimed) {
			if err != nil {
				return err
			}
			return r.respondWritten(w, done)
		}
		winner, err := r.site.Store.Get(r.Context(), claimed.Holder)
		switch {
		case err == nil && criteria.HoldsFor(r4.Tokens(winner.Body.JSON)):
			return r.respondFound(w, winner)
		case err == nil:
			return claimed // the winner was changed since and matches no more
		case !isAbsent(err):
			return err
		}
		if err := sleep(r.Context(), claimPoll); err != nil {
			return err
		}
	}
}

// parseCriteria reads If-None-Exist: a query string, with or without its ?.
func (h *handler) parseCriteria(r *request, header []string) (search.Query, error) {
	values, err := url.ParseQuery(strings.TrimPrefix(strings.Join(header, "&"), "?"))
	if err != nil {
		return search.Query{}, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Exist is no query string: " + err.Error()}
	}
	return search.ParseCriteria(values, h.searchOptions(r))
}

// respondFound answers a conditional create with the record that was there.
func (r *request) respondFound(w http.ResponseWriter, rec store.Record) error {
	w.Header().Set("Location", r.versionURL(rec))
	return r.respondWritten(w, store.Result{Outcome: store.Unchanged, Record: rec})
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
