package fhir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The issue types of what a request can have wrong, beside those of a body.
const (
	issueInformational   r4.IssueType = "informational"
	issueNotSupported    r4.IssueType = "not-supported"
	issueNotFound        r4.IssueType = "not-found"
	issueDeleted         r4.IssueType = "deleted"
	issueLogin           r4.IssueType = "login"
	issueForbidden       r4.IssueType = "forbidden"
	issueConflict        r4.IssueType = "conflict"
	issueMultipleMatches r4.IssueType = "multiple-matches"
	issueDuplicate       r4.IssueType = "duplicate"
	issueTooLong         r4.IssueType = "too-long"
	issueNoStore         r4.IssueType = "no-store"
	issueTransient       r4.IssueType = "transient"
	issueTimeout         r4.IssueType = "timeout"
	issueTooCostly       r4.IssueType = "too-costly"
	issueException       r4.IssueType = "exception"
)

// The stable machine codes of what a request can have wrong, beside those of a body.
const (
	codeInvalidQuery         = "invalid_query"
	codeInvalidHeader        = "invalid_header"
	codeUnknownPath          = "unknown_path"
	codeUnknownType          = "unknown_type"
	codeUnknownSite          = "unknown_site"
	codeNotInCompartment     = "not_in_compartment"
	codeMethodNotAllowed     = "method_not_allowed"
	codeUnknownMethod        = "unknown_method"
	codeUnknownOperation     = "unknown_operation"
	codeUpdateCreate         = "update_create_disabled"
	codeNotAcceptable        = "not_acceptable"
	codeUnsupportedMediaType = "unsupported_media_type"
	codeNotSupported         = "not_supported"
	codeTooLarge             = "too_large"
	codeNotFound             = "resource_not_found"
	codeDeleted              = "deleted"
	codeVersionConflict      = "version_conflict"
	codeClaimConflict        = "claim_conflict"
	codeInvalidPatch         = "invalid_patch"
	codeInvalidParameters    = "invalid_parameters"
	codeInvalidBundle        = "invalid_bundle"
	codeInvalidReference     = "invalid_reference"
	codeReferenceNotFound    = "reference_not_found"
	codeStillReferenced      = "still_referenced"
	codePatchConflict        = "patch_conflict"
	codePatchTestFailed      = "patch_test_failed"
	codeIDTaken              = "id_taken"
	codeMultipleMatches      = "multiple_matches"
	codeStorageFull          = "storage_full"
	codeUnavailable          = "unavailable"
	codeQueryTimeout         = "query_timeout"
	codeTimeout              = "timeout"
	codeTooCostly            = "too_costly"
	codeLoginRequired        = "login_required"
	codePermissionDenied     = "permission_denied"
	codeInternal             = "internal"
)

// invalidError says that a part of the request other than its body is wrong.
type invalidError struct{ code, diagnostics, expression string }

func (e *invalidError) Error() string { return e.diagnostics }

// pathUnknownError says that there is nothing at a path.
type pathUnknownError struct{}

func (e *pathUnknownError) Error() string {
	return "there is nothing at this path; resources are at /site/{siteId}/fhir/{type}/{id}"
}

// typeUnknownError says that a path names no type that the server keeps.
type typeUnknownError struct{ segment string }

func (e *typeUnknownError) Error() string {
	names := make([]string, len(r4.Types))
	for i, t := range r4.Types {
		names[i] = t.Segment
	}
	return r4.Quote(e.segment) + " is not a resource type of this server; it has " + strings.Join(names, ", ")
}

// operationUnknownError says that there is no such operation.
type operationUnknownError struct{ name string }

func (e *operationUnknownError) Error() string {
	return "the operation " + r4.Quote(e.name) + " is not supported at this path; supported operations: " +
		"POST {type}/$validate and POST {type}/{id}/$validate"
}

// updateCreateError says that an update does not create a record under an id that the client
// chose, as the site makes the ids of new records itself. R4 http.html#update.
type updateCreateError struct{}

func (e *updateCreateError) Error() string {
	return "this site makes the ids of new records itself (fhir.updateCreate: false), so PUT updates existing records only; " +
		"create a record by POST {type} without an id"
}

// methodError says that a path does not take the method.
type methodError struct{ allowed []string }

func (e *methodError) Error() string {
	return "this path takes the methods " + strings.Join(e.allowed, ", ")
}

// methodUnknownError says that the method is none of HTTP's.
type methodUnknownError struct{}

func (e *methodUnknownError) Error() string { return "this server does not know the method" }

// notAcceptableError says that the client takes no kind of JSON.
type notAcceptableError struct{ parameter, value string }

func (e *notAcceptableError) Error() string {
	return fmt.Sprintf("%s asks for %s; this server answers in %s or %s",
		e.parameter, r4.Quote(e.value), contractDialect.mediaType, fhirDialect.mediaType)
}

// mediaTypeError says that a body is in a format that is not taken.
type mediaTypeError struct{ problem string }

func (e *mediaTypeError) Error() string { return e.problem }

// patchTypeError says that a patch is in a format that is not taken.
type patchTypeError struct{ kind string }

func (e *patchTypeError) Error() string {
	return fmt.Sprintf("a patch is taken as %s, not %s", patchFormat, r4.Quote(e.kind))
}

// isAbsent reports whether err says that there is no such record, any more or yet.
func isAbsent(err error) bool {
	var deleted *store.DeletedError
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &deleted)
}
