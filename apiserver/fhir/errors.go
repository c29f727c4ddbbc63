package fhir

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
	"github.com/paddock-health/paddock/apiserver/web"
)

// The issue types of errors, in addition to those of package r4. R4 valueset-issue-type.html.
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
	issueBusinessRule    r4.IssueType = "business-rule"
	issueTooLong         r4.IssueType = "too-long"
	issueNoStore         r4.IssueType = "no-store"
	issueTransient       r4.IssueType = "transient"
	issueThrottled       r4.IssueType = "throttled"
	issueTimeout         r4.IssueType = "timeout"
	issueTooCostly       r4.IssueType = "too-costly"
	issueException       r4.IssueType = "exception"
)

// The codes of errors in details.coding, in addition to those of packages r4 and web. Clients
// depend on them, so they never change.
const (
	codeInvalidQuery      = "invalid_query"
	codeInvalidHeader     = "invalid_header"
	codeUnknownType       = "unknown_type"
	codeNotInCompartment  = "not_in_compartment"
	codeUnknownOperation  = "unknown_operation"
	codeUpdateCreate      = "update_create_disabled"
	codeNotSupported      = "not_supported"
	codeNotFound          = "resource_not_found"
	codeDeleted           = "deleted"
	codeVersionConflict   = "version_conflict"
	codeInvalidPatch      = "invalid_patch"
	codeInvalidParameters = "invalid_parameters"
	codeInvalidBundle     = "invalid_bundle"
	codeInvalidReference  = "invalid_reference"
	codeReferenceNotFound = "reference_not_found"
	codeStillReferenced   = "still_referenced"
	codeSubsetted         = "subsetted_resource"
	codePatchConflict     = "patch_conflict"
	codePatchTestFailed   = "patch_test_failed"
	codeIDTaken           = "id_taken"
	codeMultipleMatches   = "multiple_matches"
	codeQueryTimeout      = "query_timeout"
	codeTooCostly         = "too_costly"
)

// invalidError is an error in a request that has no type of its own, such as an invalid header or
// an id that does not match. expression is the FHIRPath of the element, or empty.
type invalidError struct{ code, diagnostics, expression string }

func (e *invalidError) Error() string { return e.diagnostics }

// errUnknownPath is the error of a path without a route.
var errUnknownPath = &web.UnknownPathError{Paths: "resources are at /site/{siteId}/fhir/{type}/{id}"}

// typeUnknownError is the error of a path or reference with an unsupported resource type.
type typeUnknownError struct{ segment string }

func (e *typeUnknownError) Error() string {
	var segments, names []string
	for _, t := range r4.Types {
		segments = append(segments, t.Segment)
		names = append(names, t.Name)
	}
	known := names
	if e.segment == strings.ToLower(e.segment) {
		known = segments
	}
	message := r4.Quote(e.segment) + " is not a supported resource type"
	if name, ok := suggest.Closest(e.segment, known); ok {
		return message + "; did you mean " + name + "?"
	}
	return message + "; supported types: " + strings.Join(segments, ", ")
}

// operations are the names of the supported operations.
var operations = []string{"$validate", "$everything", "$export", "$import", "$purge"}

// operationUnknownError is the error of an unsupported operation. inBundle is set if the operation is
// supported, but not as an entry of a Bundle.
type operationUnknownError struct {
	name     string
	inBundle bool
}

func (e *operationUnknownError) Error() string {
	if e.inBundle {
		return e.name + " cannot be an entry of a Bundle; send it as a request of its own"
	}
	supported := "; supported"
	if name, ok := suggest.Closest(e.name, operations); ok && name != e.name {
		supported = "; did you mean " + name + "? Supported"
	}
	return "the operation " + r4.Quote(e.name) + " is not supported at this path" + supported + " operations: " +
		"POST {type}/$validate, POST {type}/{id}/$validate, POST {type}/{id}/$purge, GET or POST Patient/{id}/$everything, GET $export, GET Patient/$export, GET Group/{id}/$export and POST $import"
}

// updateCreateError rejects a PUT that would create a record, on a site that chooses the ids of new
// records. R4 http.html#update.
type updateCreateError struct{}

func (e *updateCreateError) Error() string {
	return "this site makes the ids of new records itself (fhir.updateCreate: false), so PUT updates existing records only; " +
		"create a record by POST {type} without an id"
}

// patchTypeError is the error of a patch with an unsupported Content-Type.
type patchTypeError struct{ kind string }

func (e *patchTypeError) Error() string {
	return fmt.Sprintf("Content-Type: %s is not supported for a patch; send %s", r4.Quote(e.kind), patchFormat)
}

// absentError is store.ErrNotFound in the terms of a request.
type absentError struct{ diagnostics string }

func (e *absentError) Error() string { return e.diagnostics }

func (e *absentError) Unwrap() error { return store.ErrNotFound }

// describe returns err. If that is store.ErrNotFound, describe returns an *absentError that names what
// the request refers to. The text is the same for a record that is hidden from the caller.
func (r *request) describe(err error) error {
	var absent *absentError
	var ofEntry *entryError
	if !errors.Is(err, store.ErrNotFound) || errors.As(err, &absent) || errors.As(err, &ofEntry) {
		return err
	}
	record := r4.Quote(r.kind.Name + "/" + r.id)
	switch {
	case strings.Contains(r.Pattern, "/{job}"):
		return &absentError{"the caller has no export or file at this address; the export may have expired, so start a new one"}
	case r.id == "" && r.Method == http.MethodPatch:
		return &absentError{"no record matches the criteria, so nothing was changed; correct the criteria"}
	case r.id == "":
		return err
	case r.version != "":
		return &absentError{"version " + r4.Quote(r.version) + " of " + record + " does not exist, or the caller may not read it"}
	default:
		return &absentError{record + " does not exist, or the caller may not read it"}
	}
}
