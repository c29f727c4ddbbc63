package fhir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/jsonpatch"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

func TestProblemOf(t *testing.T) {
	key := store.Key{Type: "Patient", ID: "a"}
	retry := map[string]string{"Retry-After": "5"}
	tests := map[string]struct {
		err    error
		status int
		kind   r4.IssueType
		code   string
		header map[string]string
	}{
		"a resource":            {r4.Errors{{Type: r4.IssueValue, Code: r4.CodeInvalidID}}, 400, r4.IssueValue, r4.CodeInvalidID, nil},
		"a query":               {search.Errors{{Parameter: "_count", Problem: "is wrong"}}, 400, r4.IssueInvalid, codeInvalidQuery, nil},
		"an ETag":               {&web.ETagError{}, 400, r4.IssueInvalid, codeInvalidHeader, nil},
		"a header":              {&invalidError{code: codeInvalidHeader}, 400, r4.IssueInvalid, codeInvalidHeader, nil},
		"a page of other terms": {store.ErrBadPosition, 400, r4.IssueInvalid, codeInvalidQuery, nil},
		"a long query":          {&store.TooManyConditionsError{Count: 5001, Max: 5000}, 400, issueTooCostly, web.CodeTooManyConditions, nil},
		"no token":              {&access.TokenError{}, 401, issueLogin, web.CodeLoginRequired, map[string]string{"WWW-Authenticate": `Bearer realm="paddock"`}},
		"a bad token": {
			&access.TokenError{Code: "invalid_token", Description: "expired"}, 401, issueLogin, web.CodeLoginRequired,
			map[string]string{"WWW-Authenticate": `Bearer realm="paddock", error="invalid_token", error_description="expired"`},
		},
		"no right":      {&access.ForbiddenError{}, 403, issueForbidden, web.CodePermissionDenied, nil},
		"a hidden site": {access.ErrSiteHidden, 404, issueNotFound, web.CodeUnknownSite, nil},
		"a request too many": {
			&limits.ExceededError{Policy: "caller", Quota: 20, Window: 5 * time.Second, RetryAfter: 1200 * time.Millisecond}, 429, issueThrottled, web.CodeTooManyRequests,
			map[string]string{"Retry-After": "2", "RateLimit-Policy": `"caller";q=20;w=5`, "RateLimit": `"caller";r=0;t=2`},
		},
		"a search too many": {
			&limits.ExceededError{Policy: "searches", RetryAfter: 2 * time.Second}, 429, issueThrottled, web.CodeTooManyRequests,
			map[string]string{"Retry-After": "2"},
		},
		"an unknown path":              {errUnknownPath, 404, issueNotFound, web.CodeUnknownPath, nil},
		"an unknown type":              {&typeUnknownError{}, 404, issueNotSupported, codeUnknownType, nil},
		"an unknown record":            {store.ErrNotFound, 404, issueNotFound, codeNotFound, nil},
		"a method":                     {&web.MethodError{Allowed: []string{"GET", "HEAD"}}, 405, issueNotSupported, web.CodeMethodNotAllowed, map[string]string{"Allow": "GET, HEAD"}},
		"a format":                     {&web.NotAcceptableError{}, 406, issueNotSupported, web.CodeNotAcceptable, nil},
		"a claim":                      {&store.ClaimError{}, 409, issueDuplicate, web.CodeClaimConflict, nil},
		"a deleted record":             {&store.DeletedError{Version: 4}, 410, issueDeleted, codeDeleted, map[string]string{"ETag": `W/"4"`}},
		"a stale version":              {&store.PreconditionError{Key: key, Current: &store.Record{Version: 7}}, 412, issueConflict, codeVersionConflict, map[string]string{"ETag": `W/"7"`}},
		"a version of nothing":         {&store.PreconditionError{Key: key}, 412, issueConflict, codeVersionConflict, nil},
		"a large body":                 {&web.TooLargeError{}, 413, issueTooLong, web.CodeTooLarge, nil},
		"a large record":               {&store.LimitError{Scope: store.LimitRecord}, 413, issueTooLong, web.CodeTooLarge, nil},
		"a body of Brotli":             {&web.EncodingError{Encoding: "br"}, 415, issueNotSupported, web.CodeUnsupportedMediaType, nil},
		"a body cut off":               {&web.BrokenBodyError{}, 400, r4.IssueInvalid, r4.CodeUnparseable, nil},
		"a body of XML":                {&web.MediaTypeError{}, 415, issueNotSupported, web.CodeUnsupportedMediaType, nil},
		"a panic":                      {errors.New("index out of range"), 500, issueException, web.CodeInternal, nil},
		"an unknown method":            {&web.UnknownMethodError{}, 501, issueNotSupported, web.CodeUnknownMethod, nil},
		"several matches":              {&multipleMatchesError{"x"}, 412, issueMultipleMatches, codeMultipleMatches, nil},
		"an id in use":                 {&idTakenError{key}, 409, issueDuplicate, codeIDTaken, nil},
		"a patch of XML":               {&patchTypeError{}, 415, issueNotSupported, web.CodeUnsupportedMediaType, map[string]string{"Accept-Patch": patchFormat}},
		"a patch":                      {&jsonpatch.InvalidError{}, 400, r4.IssueInvalid, codeInvalidPatch, nil},
		"a patch of something":         {&jsonpatch.ConflictError{}, 409, issueConflict, codePatchConflict, nil},
		"a test in a patch":            {&jsonpatch.ConflictError{Test: true}, 409, issueConflict, codePatchTestFailed, nil},
		"a patch that inflates":        {&jsonpatch.SizeError{}, 413, issueTooLong, web.CodeTooLarge, nil},
		"a patch that takes long":      {&jsonpatch.CostError{}, 422, issueTooCostly, codeTooCostly, nil},
		"a long bundle":                {&tooManyEntriesError{}, 413, issueTooLong, web.CodeTooLarge, nil},
		"a bundle that asks for much":  {&tooCostlyError{}, 422, issueTooCostly, codeTooCostly, nil},
		"an entry":                     {&entryError{"Bundle.entry[0]", store.ErrNotFound}, 404, issueNotFound, codeNotFound, nil},
		"a transaction":                {store.ErrNotAtomic, 501, issueNotSupported, codeNotSupported, nil},
		"storage away":                 {store.ErrUnavailable, 503, issueTransient, web.CodeUnavailable, retry},
		"index being built":            {store.ErrNotReady, 503, issueTransient, web.CodeUnavailable, retry},
		"a query that takes long":      {store.ErrQueryTimeout, 503, issueTooCostly, codeQueryTimeout, retry},
		"identity away":                {access.ErrUnavailable, 503, issueTransient, web.CodeUnavailable, retry},
		"too slow":                     {context.DeadlineExceeded, 503, issueTimeout, web.CodeTimeout, retry},
		"a full site":                  {&store.LimitError{Scope: store.LimitSite}, 507, issueNoStore, web.CodeStorageFull, nil},
		"a full cluster":               {&store.LimitError{Scope: store.LimitCluster}, 507, issueNoStore, web.CodeStorageFull, nil},
		"too many events on their way": {&store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries, Max: 1000}, 429, issueThrottled, web.CodeEventsFull, map[string]string{"Retry-After": "5"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := problemOf(fmt.Errorf("wrapped: %w", test.err))
			if p.status != test.status || len(p.issues) != 1 || p.issues[0].Type != test.kind || p.issues[0].Code != test.code {
				t.Errorf("got %+v", p)
			}
			if diff := cmp.Diff(test.header, p.header); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsHideInternals(t *testing.T) {
	for _, err := range []error{
		errors.New("dial 10.1.2.3: secret"),
		fmt.Errorf("%w: dial 10.1.2.3: secret", store.ErrUnavailable),
	} {
		if said := problemOf(err).issues[0].Diagnostics; strings.Contains(said, "10.1.2.3") {
			t.Errorf("%v is answered with %s", err, said)
		}
	}
}

func TestAppendOutcome(t *testing.T) {
	got, err := appendOutcome(nil, "https://host/errors", []r4.Issue{
		{Severity: r4.SeverityError, Type: r4.IssueValue, Code: "invalid_value", Diagnostics: `a <b> & "c"`, Expression: "Patient.name[0]"},
		information("created", "the record is created"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"resourceType":"OperationOutcome","issue":[` +
		`{"severity":"error","code":"value","details":{"coding":[{"system":"https://host/errors","code":"invalid_value"}],"text":"A value is invalid."},"diagnostics":"a <b> & \"c\"","expression":["Patient.name[0]"]},` +
		`{"severity":"information","code":"informational","details":{"coding":[{"system":"https://host/errors","code":"created"}],"text":"The record is created."},"diagnostics":"the record is created"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid(got) {
		t.Error("it is not JSON")
	}
}

// TestProblemsHideEngineErrors shows that the text of an engine's error is not sent to clients.
func TestProblemsHideEngineErrors(t *testing.T) {
	secret := errors.New(`ERROR: canceling statement (SQLSTATE 57014) at db.example.org`)
	for _, err := range []error{store.ErrQueryTimeout, store.ErrUnavailable, store.ErrNotReady, errors.New("search")} {
		for _, issue := range problemOf(fmt.Errorf("search: %w: %w", err, secret)).issues {
			if strings.Contains(issue.Diagnostics, "SQLSTATE") || strings.Contains(issue.Diagnostics, "example.org") {
				t.Errorf("%v is answered with %s", err, issue.Diagnostics)
			}
		}
	}
}
