package fhir

import (
	"errors"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/jsonpatch"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// problem is the response to an error.
type problem struct {
	status int
	header map[string]string
	issues []r4.Issue
}

// issueTypes has the issue types of failures by their codes.
var issueTypes = map[string]r4.IssueType{
	web.CodeUnknownPath:          issueNotFound,
	web.CodeUnknownSite:          issueNotFound,
	web.CodeMethodNotAllowed:     issueNotSupported,
	web.CodeUnknownMethod:        issueNotSupported,
	web.CodeNotAcceptable:        issueNotSupported,
	web.CodeUnsupportedMediaType: issueNotSupported,
	web.CodeTooLarge:             issueTooLong,
	web.CodeLoginRequired:        issueLogin,
	web.CodePermissionDenied:     issueForbidden,
	web.CodeTooManyRequests:      issueThrottled,
	web.CodeClaimConflict:        issueDuplicate,
	web.CodeStorageFull:          issueNoStore,
	web.CodeEventsFull:           issueThrottled,
	web.CodeUnavailable:          issueTransient,
	web.CodeMoving:               issueTransient,
	web.CodeAuditUnavailable:     issueTransient,
	web.CodeTimeout:              issueTimeout,
	web.CodeTooManyConditions:    issueTooCostly,
	codeQueryTimeout:             issueTooCostly,
	web.CodeInternal:             issueException,
}

// problemOf returns the response to an error. Only this function and web.FailureOf map errors to a
// status.
func problemOf(err error) problem {
	var ofEntry *entryError
	if errors.As(err, &ofEntry) {
		return ofEntry.problem()
	}
	for _, known := range []func(error) (problem, bool){bodyProblem, requestProblem, patchProblem, referenceProblem, storeProblem} {
		if p, ok := known(err); ok {
			return p
		}
	}
	return problemFrom(web.FailureOf(err))
}

// problemFrom returns a failure as a problem.
func problemFrom(f web.Failure) problem {
	p := failure(f.Status, issueTypes[f.Code], f.Code, f.Detail)
	p.header = f.Header
	return p
}

func failure(status int, kind r4.IssueType, code, diagnostics string) problem {
	return problem{status: status, issues: []r4.Issue{{
		Severity: r4.SeverityError, Type: kind, Code: code, Diagnostics: diagnostics,
	}}}
}

// withHeader returns p with one header field, which replaces all header fields of p.
func (p problem) withHeader(name, value string) problem {
	p.header = map[string]string{name: value}
	return p
}

// bodyProblem maps errors in resources and queries.
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

// requestProblem maps the errors of this package, except *entryError and *patchTypeError, and the
// errors in headers and bodies that packages access and web leave to a facade.
func requestProblem(err error) (problem, bool) {
	var (
		invalid      *invalidError
		kind         *typeUnknownError
		operation    *operationUnknownError
		updateCreate *updateCreateError
		tag          *web.ETagError
		header       *access.HeaderError
		broken       *web.BrokenBodyError
		several      *multipleMatchesError
		idTaken      *idTakenError
		tooMany      *tooManyEntriesError
		tooCostly    *tooCostlyError
		toPurge      *tooManyToPurgeError
		outside      *notInCompartmentError
	)
	failed := func(status int, issue r4.IssueType, code string) (problem, bool) {
		return failure(status, issue, code, err.Error()), true
	}
	switch {
	case errors.As(err, &invalid):
		p := failure(http.StatusBadRequest, r4.IssueInvalid, invalid.code, invalid.diagnostics)
		p.issues[0].Expression = invalid.expression
		return p, true
	case errors.As(err, &tag):
		return failure(http.StatusBadRequest, r4.IssueInvalid, codeInvalidHeader, tag.Header+": "+r4.Quote(tag.Item)+` is not an ETag; write W/"1" or *`), true
	case errors.As(err, &header):
		return failed(http.StatusBadRequest, r4.IssueInvalid, codeInvalidHeader)
	case errors.As(err, &kind):
		return failed(http.StatusNotFound, issueNotSupported, codeUnknownType)
	case errors.As(err, &operation):
		return failed(http.StatusNotFound, issueNotFound, codeUnknownOperation)
	case errors.As(err, &updateCreate):
		p, _ := failed(http.StatusMethodNotAllowed, issueNotSupported, codeUpdateCreate)
		return p.withHeader("Allow", "DELETE, GET, HEAD, PATCH"), true
	case errors.As(err, &outside):
		return failed(http.StatusBadRequest, issueNotSupported, codeNotInCompartment)
	case errors.As(err, &broken):
		return failed(http.StatusBadRequest, r4.IssueInvalid, r4.CodeUnparseable)
	case errors.As(err, &several):
		return failed(http.StatusPreconditionFailed, issueMultipleMatches, codeMultipleMatches)
	case errors.As(err, &tooMany):
		return failed(http.StatusRequestEntityTooLarge, issueTooLong, web.CodeTooLarge)
	case errors.As(err, &tooCostly), errors.As(err, &toPurge):
		return failed(http.StatusUnprocessableEntity, issueTooCostly, codeTooCostly)
	case errors.As(err, &idTaken):
		return failed(http.StatusConflict, issueDuplicate, codeIDTaken)
	}
	return problem{}, false
}

// patchProblem maps the errors of package jsonpatch. A patch that cannot be applied to the current
// resource is a conflict (RFC 5789 §2.2). bodyProblem maps the errors in the patched resource.
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
		return failure(http.StatusUnsupportedMediaType, issueNotSupported, web.CodeUnsupportedMediaType, err.Error()).
			withHeader("Accept-Patch", patchFormat), true
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
		return failure(http.StatusRequestEntityTooLarge, issueTooLong, web.CodeTooLarge, err.Error()), true
	}
	return problem{}, false
}

// referenceProblem maps the errors of package integrity.
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

// storeProblem maps the errors of package store, except those that web.FailureOf maps.
func storeProblem(err error) (problem, bool) {
	var (
		deleted      *store.DeletedError
		precondition *store.PreconditionError
		ambiguous    *store.AmbiguousError
		taken        *store.IDTakenError
	)
	switch {
	case errors.Is(err, store.ErrNotFound):
		text := "the record does not exist, or the caller may not read it"
		if absent := new(absentError); errors.As(err, &absent) {
			text = absent.diagnostics
		}
		return failure(http.StatusNotFound, issueNotFound, codeNotFound, text), true
	case errors.As(err, &deleted):
		return failure(http.StatusGone, issueDeleted, codeDeleted, err.Error()).withHeader("ETag", etag(deleted.Version).String()), true
	case errors.As(err, &precondition):
		text := err.Error()
		if precondition.Key.ID == "" { // a conditional interaction without a match
			text = "If-Match requires a record, but no record matches the criteria; correct the criteria or omit the header"
		}
		p := failure(http.StatusPreconditionFailed, issueConflict, codeVersionConflict, text)
		if precondition.Current != nil {
			p = p.withHeader("ETag", etag(precondition.Current.Version).String())
		}
		return p, true
	case errors.As(err, &taken):
		return failure(http.StatusConflict, issueDuplicate, codeIDTaken, err.Error()), true
	case errors.As(err, &ambiguous):
		return bodyProblem(search.Errors{{Parameter: ambiguous.Param, Problem: ambiguous.Error() + "; write {type}/{id}"}})
	case errors.Is(err, store.ErrBadPosition):
		return failure(http.StatusBadRequest, r4.IssueInvalid, codeInvalidQuery, (search.Error{Parameter: "_page_token", Problem: "the token does not belong to this query; start again without it"}).Error()), true
	case errors.Is(err, store.ErrNotAtomic):
		return failure(http.StatusNotImplemented, issueNotSupported, codeNotSupported,
			err.Error()+"; send a batch, or use a site with storage.type: Postgres"), true
	case errors.Is(err, store.ErrQueryTimeout):
		return problemFrom(web.RetryLater(http.StatusServiceUnavailable, codeQueryTimeout, store.ErrQueryTimeout.Error()+"; use fewer alternatives, shorter chains or narrower filters")), true
	}
	return problem{}, false
}
