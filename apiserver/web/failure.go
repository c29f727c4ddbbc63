package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Failure is the response to an error that has the same meaning in every facade. A facade writes it
// in its own format: an OperationOutcome or a problem document.
type Failure struct {
	Status int
	// Code is the error code for programs: a Code constant of this package, or a code of the facade.
	Code string
	// Detail is a message for people.
	Detail string
	Header map[string]string
}

// The codes of failures. Clients depend on them, so they never change.
const (
	CodeUnknownPath          = "unknown_path"
	CodeUnknownSite          = "unknown_site"
	CodeMethodNotAllowed     = "method_not_allowed"
	CodeUnknownMethod        = "unknown_method"
	CodeNotAcceptable        = "not_acceptable"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeTooLarge             = "too_large"
	CodeLoginRequired        = "login_required"
	CodePermissionDenied     = "permission_denied"
	CodeTooManyRequests      = "too_many_requests"
	CodeClaimConflict        = "claim_conflict"
	CodeStorageFull          = "storage_full"
	CodeEventsFull           = "events_full"
	CodeUnavailable          = "unavailable"
	CodeMoving               = "site_moving"
	CodeAuditUnavailable     = "audit_unavailable"
	CodeTooManyConditions    = "too_many_conditions"
	CodeTimeout              = "timeout"
	CodeInternal             = "internal"
)

// retryAfter is the Retry-After of temporary failures, in seconds. RFC 9110 §10.2.3. A
// *limits.ExceededError has its own.
const retryAfter = "5"

// mayBeWritten is appended to Failure.Detail if the outcome of a write is unknown.
const mayBeWritten = "; retry later, and before repeating a write, check whether it has succeeded"

// With returns a copy of f with one header field in place of all header fields of f.
func (f Failure) With(name, value string) Failure {
	f.Header = map[string]string{name: value}
	return f
}

// RetryLater returns the Failure, with the header field Retry-After, of a request that can succeed
// later without a change.
func RetryLater(status int, code, detail string) Failure {
	return Failure{Status: status, Code: code, Detail: detail}.With("Retry-After", retryAfter)
}

// FailureOf returns the Failure for an error of package web, access, audit, limits or store, or of a
// request's context. A facade first handles the errors that it describes in its own terms, such as
// *ETagError, *BrokenBodyError and store.ErrNotFound. Any other error is an internal error, whose
// text clients do not see.
func FailureOf(err error) Failure {
	for _, known := range []func(error) (Failure, bool){requestFailure, accessFailure, storeFailure} {
		if f, ok := known(err); ok {
			return f
		}
	}
	return Failure{
		Status: http.StatusInternalServerError, Code: CodeInternal,
		Detail: "the server failed; the operator finds the cause in the server's log under the X-Request-Id of this response",
	}
}

func failure(err error, status int, code string) Failure {
	return Failure{Status: status, Code: code, Detail: err.Error()}
}

// requestFailure returns the failure of an error of this package.
func requestFailure(err error) (Failure, bool) {
	var (
		path          *UnknownPathError
		method        *MethodError
		unknownMethod *UnknownMethodError
		notAcceptable *NotAcceptableError
		mediaType     *MediaTypeError
		encoding      *EncodingError
		tooLarge      *TooLargeError
	)
	switch {
	case errors.As(err, &path):
		return failure(err, http.StatusNotFound, CodeUnknownPath), true
	case errors.As(err, &method):
		return failure(err, http.StatusMethodNotAllowed, CodeMethodNotAllowed).With("Allow", strings.Join(method.Allowed, ", ")), true
	case errors.As(err, &unknownMethod):
		return failure(err, http.StatusNotImplemented, CodeUnknownMethod), true
	case errors.As(err, &notAcceptable):
		return failure(err, http.StatusNotAcceptable, CodeNotAcceptable), true
	case errors.As(err, &mediaType), errors.As(err, &encoding):
		return failure(err, http.StatusUnsupportedMediaType, CodeUnsupportedMediaType), true
	case errors.As(err, &tooLarge):
		return failure(err, http.StatusRequestEntityTooLarge, CodeTooLarge), true
	}
	return Failure{}, false
}

// accessFailure returns the failure of an error of package access, audit or limits.
func accessFailure(err error) (Failure, bool) {
	var (
		token     *access.TokenError
		forbidden *access.ForbiddenError
		exceeded  *limits.ExceededError
	)
	switch {
	case errors.Is(err, audit.ErrUnavailable):
		return RetryLater(http.StatusServiceUnavailable, CodeAuditUnavailable, err.Error()), true
	case errors.As(err, &token):
		return failure(err, http.StatusUnauthorized, CodeLoginRequired).With("WWW-Authenticate", token.Challenge()), true
	case errors.As(err, &forbidden):
		return failure(err, http.StatusForbidden, CodePermissionDenied), true
	case errors.As(err, &exceeded):
		f := failure(err, http.StatusTooManyRequests, CodeTooManyRequests)
		f.Header = rateLimitHeader(exceeded)
		return f, true
	case errors.Is(err, access.ErrSiteHidden):
		return failure(err, http.StatusNotFound, CodeUnknownSite), true
	case errors.Is(err, access.ErrUnavailable):
		// The text of err may contain addresses, and differ between hidden and absent sites.
		return RetryLater(http.StatusServiceUnavailable, CodeUnavailable, access.ErrUnavailable.Error()), true
	}
	return Failure{}, false
}

// storeFailure returns the failure of an error of package store or of a request's context.
func storeFailure(err error) (Failure, bool) {
	var (
		claim   *store.ClaimError
		limit   *store.LimitError
		tooMany *store.TooManyConditionsError
	)
	switch {
	case errors.As(err, &claim):
		return failure(err, http.StatusConflict, CodeClaimConflict), true
	case errors.As(err, &limit) && limit.IsBacklog():
		return RetryLater(http.StatusTooManyRequests, CodeEventsFull, err.Error()+"; retry later"), true
	case errors.As(err, &limit) && limit.Scope == store.LimitRecord:
		return Failure{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, Detail: err.Error() + "; send less in one write"}, true
	case errors.As(err, &limit):
		return Failure{Status: http.StatusInsufficientStorage, Code: CodeStorageFull, Detail: err.Error() + "; delete records that are not needed, or ask the operator to raise the limit"}, true
	case errors.As(err, &tooMany):
		return Failure{Status: http.StatusBadRequest, Code: CodeTooManyConditions, Detail: tooMany.Error() + "; use fewer parameters or values"}, true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return RetryLater(http.StatusServiceUnavailable, CodeTimeout, "the request took too long"+mayBeWritten), true
	case errors.Is(err, store.ErrMoving):
		return RetryLater(http.StatusServiceUnavailable, CodeMoving, store.ErrMoving.Error()+"; nothing was written: send the request again"), true
	case errors.Is(err, store.ErrNotReady):
		return RetryLater(http.StatusServiceUnavailable, CodeUnavailable, store.ErrNotReady.Error()), true
	case errors.Is(err, store.ErrUnavailable): // the text of err may contain host names
		return RetryLater(http.StatusServiceUnavailable, CodeUnavailable, store.ErrUnavailable.Error()+mayBeWritten), true
	}
	return Failure{}, false
}
