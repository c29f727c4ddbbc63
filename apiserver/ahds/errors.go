package ahds

import (
	"errors"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The stable codes of problems, beside those of faults and of slots.
const (
	codeInvalidRequest       = "invalid_request"
	codeUnknownPath          = "unknown_path"
	codeUnknownSite          = "unknown_site"
	codeMethodNotAllowed     = "method_not_allowed"
	codeUnknownMethod        = "unknown_method"
	codeNotAcceptable        = "not_acceptable"
	codeUnsupportedMediaType = "unsupported_media_type"
	codeTooLarge             = "too_large"
	codeNotFound             = "resource_not_found"
	codeVersionConflict      = "version_conflict"
	codeIDTaken              = "id_taken"
	codeKeyReused            = "idempotency_key_reused"
	codeClaimConflict        = "claim_conflict"
	codeStorageFull          = "storage_full"
	codeUnavailable          = "unavailable"
	codeQueryTimeout         = "query_timeout"
	codeTimeout              = "timeout"
	codeLoginRequired        = "login_required"
	codePermissionDenied     = "permission_denied"
	codeInternal             = "internal"
)

// pathUnknownError says that there is nothing at a path.
type pathUnknownError struct{}

func (e *pathUnknownError) Error() string {
	return "there is nothing at this path; this API has /site/{siteId}/ahds/v1/availability-slot, /eventgroup, /webhook-event and /webhook"
}

// methodError says that a path does not take the method.
type methodError struct{ allowed []string }

func (e *methodError) Error() string {
	return "this path takes the methods " + strings.Join(e.allowed, ", ")
}

// methodUnknownError says that the method is none of HTTP's.
type methodUnknownError struct{}

func (e *methodUnknownError) Error() string { return "this server does not know the method" }

// notAcceptableError says that the client does not take what the path has.
type notAcceptableError struct{ accept, produces string }

func (e *notAcceptableError) Error() string {
	return "Accept asks for " + fault.Quote(e.accept) + "; this path answers in " + e.produces
}

// mediaTypeError says that a body is in a format that is not taken.
type mediaTypeError struct {
	taken   []string
	problem string
}

func (e *mediaTypeError) Error() string { return e.problem }

// preconditionError says that a record is not at the version that If-Match asks for.
type preconditionError struct{ current string }

func (e *preconditionError) Error() string {
	return "the record is not at the version that If-Match asks for; it is at " + e.current
}

// idTakenError says that a client's id has been used for other content.
type idTakenError struct{ id string }

func (e *idTakenError) Error() string {
	return "there is a record with the id " + fault.Quote(e.id) + " already, which was created with other content; use another id, or PUT to replace it"
}

// keyReusedError says that an Idempotency-Key has been used for another request.
type keyReusedError struct{}

func (e *keyReusedError) Error() string {
	return "this Idempotency-Key was used for another request; use a new one for each request, and the same only to repeat one"
}

// isAbsent reports whether err says that there is no such record, any more or yet.
func isAbsent(err error) bool {
	var deleted *store.DeletedError
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &deleted)
}

// isConflict reports whether err says that a record is not as a write expected it.
func isConflict(err error) bool {
	var conflict *store.PreconditionError
	return errors.As(err, &conflict)
}
