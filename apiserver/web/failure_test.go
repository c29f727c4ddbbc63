package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestFailureOf(t *testing.T) {
	retry := map[string]string{"Retry-After": "5"}
	secret := errors.New("dial db.example.org: SQLSTATE 57014")
	tests := map[string]struct {
		err    error
		status int
		code   string
		header map[string]string
	}{
		"an unknown path":              {&UnknownPathError{}, 404, CodeUnknownPath, nil},
		"a method":                     {&MethodError{Allowed: []string{"GET", "HEAD"}}, 405, CodeMethodNotAllowed, map[string]string{"Allow": "GET, HEAD"}},
		"an unknown method":            {&UnknownMethodError{}, 501, CodeUnknownMethod, nil},
		"a format":                     {&NotAcceptableError{}, 406, CodeNotAcceptable, nil},
		"a body of XML":                {&MediaTypeError{}, 415, CodeUnsupportedMediaType, nil},
		"a body of Brotli":             {&EncodingError{}, 415, CodeUnsupportedMediaType, nil},
		"a large body":                 {&TooLargeError{}, 413, CodeTooLarge, nil},
		"no token":                     {&access.TokenError{}, 401, CodeLoginRequired, map[string]string{"WWW-Authenticate": `Bearer realm="paddock"`}},
		"no right":                     {&access.ForbiddenError{}, 403, CodePermissionDenied, nil},
		"a hidden site":                {access.ErrSiteHidden, 404, CodeUnknownSite, nil},
		"identity away":                {fmt.Errorf("%w: %w", access.ErrUnavailable, secret), 503, CodeUnavailable, retry},
		"no audit log":                 {audit.ErrUnavailable, 503, CodeAuditUnavailable, retry},
		"a request too many":           {&limits.ExceededError{RetryAfter: 1200 * time.Millisecond}, 429, CodeTooManyRequests, map[string]string{"Retry-After": "2"}},
		"a claim":                      {&store.ClaimError{}, 409, CodeClaimConflict, nil},
		"a large record":               {&store.LimitError{Scope: store.LimitRecord}, 413, CodeTooLarge, nil},
		"a full site":                  {&store.LimitError{Scope: store.LimitSite}, 507, CodeStorageFull, nil},
		"too many events on their way": {&store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries}, 429, CodeEventsFull, retry},
		"storage away":                 {fmt.Errorf("%w: %w", store.ErrUnavailable, secret), 503, CodeUnavailable, retry},
		"writes are paused":            {fmt.Errorf("%w: %w", store.ErrMoving, secret), 503, CodeMoving, retry},
		"index being built":            {fmt.Errorf("%w: %w", store.ErrNotReady, secret), 503, CodeUnavailable, retry},
		"too slow":                     {fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded), 503, CodeTimeout, retry},
		"a panic":                      {secret, 500, CodeInternal, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := FailureOf(fmt.Errorf("wrapped: %w", test.err))
			if got.Status != test.status || got.Code != test.code || got.Detail == "" {
				t.Errorf("got %+v, want status %d, code %s", got, test.status, test.code)
			}
			if diff := cmp.Diff(test.header, got.Header); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got.Detail, "example.org") {
				t.Errorf("the text of an engine is shown: %s", got.Detail)
			}
		})
	}
}
