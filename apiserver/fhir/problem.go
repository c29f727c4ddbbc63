package fhir

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/jsonpatch"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// retryAfter is how many seconds a client should wait for what is away.
const retryAfter = "5"

// problem is an error as it is answered.
type problem struct {
	status int
	header map[string]string
	issues []r4.Issue
}

// problemOf is the only place that gives an error its status and its words.
func problemOf(err error) problem {
	var ofEntry *entryError
	if errors.As(err, &ofEntry) {
		return ofEntry.problem()
	}
	for _, known := range []func(error) (problem, bool){bodyProblem, requestProblem, patchProblem, accessProblem, referenceProblem, storeProblem} {
		if p, ok := known(err); ok {
			return p
		}
	}
	return failure(http.StatusInternalServerError, issueException, codeInternal,
		"the server failed; its log has the reason under the X-Request-Id of this answer")
}

func failure(status int, kind r4.IssueType, code, diagnostics string) problem {
	return problem{status: status, issues: []r4.Issue{{
		Severity: r4.SeverityError, Type: kind, Code: code, Diagnostics: diagnostics,
	}}}
}

// with adds a header field.
func (p problem) with(name, value string) problem {
	p.header = map[string]string{name: value}
	return p
}

// bodyProblem knows what is wrong with resources and queries.
func bodyProblem(err error) (problem, bool) {
	var issues r4.Errors
	if errors.As(err, &issues) {
		return problem{status: http.StatusBadRequest, issues: issues}, true
	}
	var wrong search.Errors
	if !errors.As(err, &wrong) {
		return problem{}, false
	}
	p := problem{status: http.StatusBadRequest}
	for _, each := range wrong {
		p.issues = append(p.issues, r4.Issue{
			Severity: r4.SeverityError, Type: r4.IssueInvalid, Code: codeInvalidQuery, Diagnostics: each.Error(),
		})
	}
	return p, true
}

// requestProblem knows what is wrong with paths, methods and headers.
func requestProblem(err error) (problem, bool) {
	var (
		invalid       *invalidError
		path          *pathUnknownError
		kind          *typeUnknownError
		operation     *operationUnknownError
		updateCreate  *updateCreateError
		method        *methodError
		methodUnknown *methodUnknownError
		notAcceptable *notAcceptableError
		mediaType     *mediaTypeError
		tooLarge      *web.TooLargeError
		encoding      *web.EncodingError
		broken        *web.BrokenBodyError
		several       *multipleMatchesError
		idTaken       *idTakenError
		tooMany       *tooManyEntriesError
		tooCostly     *tooCostlyError
		outside       *outsideError
	)
	say := func(status int, issue r4.IssueType, code string) (problem, bool) {
		return failure(status, issue, code, err.Error()), true
	}
	switch {
	case errors.As(err, &invalid):
		p := failure(http.StatusBadRequest, r4.IssueInvalid, invalid.code, invalid.diagnostics)
		p.issues[0].Expression = invalid.expression
		return p, true
	case errors.As(err, &path):
		return say(http.StatusNotFound, issueNotFound, codeUnknownPath)
	case errors.As(err, &kind):
		return say(http.StatusNotFound, issueNotSupported, codeUnknownType)
	case errors.As(err, &operation):
		return say(http.StatusNotFound, issueNotFound, codeUnknownOperation)
	case errors.As(err, &updateCreate):
		p, _ := say(http.StatusMethodNotAllowed, issueNotSupported, codeUpdateCreate)
		return p.with("Allow", "DELETE, GET, HEAD, PATCH"), true
	case errors.As(err, &outside):
		return say(http.StatusBadRequest, issueNotSupported, codeNotInCompartment)
	case errors.As(err, &method):
		p, _ := say(http.StatusMethodNotAllowed, issueNotSupported, codeMethodNotAllowed)
		return p.with("Allow", strings.Join(method.allowed, ", ")), true
	case errors.As(err, &methodUnknown):
		return say(http.StatusNotImplemented, issueNotSupported, codeUnknownMethod)
	case errors.As(err, &notAcceptable):
		return say(http.StatusNotAcceptable, issueNotSupported, codeNotAcceptable)
	case errors.As(err, &mediaType):
		return say(http.StatusUnsupportedMediaType, issueNotSupported, codeUnsupportedMediaType)
	case errors.As(err, &encoding):
		return say(http.StatusUnsupportedMediaType, issueNotSupported, codeUnsupportedMediaType)
	case errors.As(err, &broken):
		return say(http.StatusBadRequest, r4.IssueInvalid, r4.CodeUnparseable)
	case errors.As(err, &tooLarge):
		return say(http.StatusRequestEntityTooLarge, issueTooLong, codeTooLarge)
	case errors.As(err, &several):
		return say(http.StatusPreconditionFailed, issueMultipleMatches, codeMultipleMatches)
	case errors.As(err, &tooMany):
		return say(http.StatusRequestEntityTooLarge, issueTooLong, codeTooLarge)
	case errors.As(err, &tooCostly):
		return say(http.StatusUnprocessableEntity, issueTooCostly, codeTooCostly)
	case errors.As(err, &idTaken):
		return say(http.StatusConflict, issueDuplicate, codeIDTaken)
	}
	return problem{}, false
}

// patchProblem knows what is wrong with patches. RFC 5789 §2.2: what does not fit
// the state of the resource is a conflict. What a patch makes of a resource is
// judged as an update is.
func patchProblem(err error) (problem, bool) {
	var (
		format   *patchTypeError
		invalid  *jsonpatch.InvalidError
		conflict *jsonpatch.ConflictError
		size     *jsonpatch.SizeError
		cost     *jsonpatch.CostError
	)
	switch {
	case errors.As(err, &format):
		return failure(http.StatusUnsupportedMediaType, issueNotSupported, codeUnsupportedMediaType, err.Error()).
			with("Accept-Patch", patchFormat), true
	case errors.As(err, &invalid):
		return failure(http.StatusBadRequest, r4.IssueInvalid, codeInvalidPatch, err.Error()), true
	case errors.As(err, &conflict):
		code := codePatchConflict
		if conflict.Test {
			code = codePatchTestFailed
		}
		return failure(http.StatusConflict, issueConflict, code, err.Error()), true
	case errors.As(err, &cost):
		return failure(http.StatusUnprocessableEntity, issueTooCostly, codeTooCostly, err.Error()), true
	case errors.As(err, &size):
		return failure(http.StatusRequestEntityTooLarge, issueTooLong, codeTooLarge, err.Error()), true
	}
	return problem{}, false
}

// accessProblem knows the errors of package access.
func accessProblem(err error) (problem, bool) {
	var (
		token     *access.TokenError
		forbidden *access.ForbiddenError
	)
	switch {
	case errors.As(err, &token):
		return failure(http.StatusUnauthorized, issueLogin, codeLoginRequired, err.Error()).
			with("WWW-Authenticate", token.Challenge()), true
	case errors.As(err, &forbidden):
		return failure(http.StatusForbidden, issueForbidden, codePermissionDenied, err.Error()), true
	case errors.Is(err, access.ErrSiteHidden):
		return failure(http.StatusNotFound, issueNotFound, codeUnknownSite, err.Error()), true
	case errors.Is(err, access.ErrUnavailable):
		return failure(http.StatusServiceUnavailable, issueTransient, codeUnavailable, err.Error()).
			with("Retry-After", retryAfter), true
	}
	return problem{}, false
}

// referenceProblem knows what is wrong with references between records.
func referenceProblem(err error) (problem, bool) {
	var (
		dangling   *integrity.DanglingError
		referenced *integrity.ReferencedError
	)
	switch {
	case errors.As(err, &dangling):
		return problem{status: http.StatusUnprocessableEntity, issues: danglingIssues(dangling)}, true
	case errors.As(err, &referenced):
		return failure(http.StatusConflict, issueConflict, codeStillReferenced, err.Error()), true
	}
	return problem{}, false
}

// storeProblem knows the errors of package store.
func storeProblem(err error) (problem, bool) {
	var (
		deleted      *store.DeletedError
		precondition *store.PreconditionError
		claim        *store.ClaimError
		limit        *store.LimitError
		ambiguous    *store.AmbiguousError
	)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return failure(http.StatusNotFound, issueNotFound, codeNotFound, "there is no such record, or no such version of it"), true
	case errors.As(err, &deleted):
		return failure(http.StatusGone, issueDeleted, codeDeleted, err.Error()).with("ETag", etag(deleted.Version)), true
	case errors.As(err, &precondition):
		p := failure(http.StatusPreconditionFailed, issueConflict, codeVersionConflict, err.Error())
		if precondition.Current != nil {
			p = p.with("ETag", etag(precondition.Current.Version))
		}
		return p, true
	case errors.As(err, &claim):
		return failure(http.StatusConflict, issueDuplicate, codeClaimConflict, err.Error()), true
	case errors.As(err, &ambiguous):
		return bodyProblem(search.Errors{{Parameter: ambiguous.Param, Problem: ambiguous.Error() + "; write {type}/{id}"}})
	case errors.As(err, &limit):
		if limit.Scope == store.LimitRecord {
			return failure(http.StatusRequestEntityTooLarge, issueTooLong, codeTooLarge, err.Error()), true
		}
		return failure(http.StatusInsufficientStorage, issueNoStore, codeStorageFull, err.Error()), true
	case errors.Is(err, store.ErrBadPosition):
		return failure(http.StatusBadRequest, r4.IssueInvalid, codeInvalidQuery, (search.Error{Parameter: "_page_token", Problem: err.Error()}).Error()), true
	case errors.Is(err, store.ErrNotAtomic):
		return failure(http.StatusNotImplemented, issueNotSupported, codeNotSupported,
			err.Error()+"; a site with storage.type: Postgres can, and a batch needs no such storage"), true
	case errors.Is(err, store.ErrQueryTimeout):
		return failure(http.StatusServiceUnavailable, issueTooCostly, codeQueryTimeout, store.ErrQueryTimeout.Error()+"; ask for less: fewer alternatives, shorter chains, narrower filters").
			with("Retry-After", retryAfter), true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return failure(http.StatusServiceUnavailable, issueTimeout, codeTimeout, "the request took too long"+maybeWritten).with("Retry-After", retryAfter), true
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrNotReady):
		return failure(http.StatusServiceUnavailable, issueTransient, codeUnavailable, unavailable(err)).
			with("Retry-After", retryAfter), true
	}
	return problem{}, false
}

// maybeWritten warns who was not told what became of a write.
const maybeWritten = "; if it was a write, it may have happened all the same"

// unavailable says why the storage did not answer, without its own words: they
// may name hosts.
func unavailable(err error) string {
	if errors.Is(err, store.ErrNotReady) {
		return store.ErrNotReady.Error()
	}
	return store.ErrUnavailable.Error() + maybeWritten
}
