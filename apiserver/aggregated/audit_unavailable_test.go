package aggregated

import (
	"net/http"
	"testing"

	"github.com/paddock-health/paddock/apiserver/audit"
)

func TestAuditUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		err        error
		retryAfter int32
	}{
		"before a write": {audit.ErrUnavailable, retryAfter},
		"after a write":  {audit.ErrWritten, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := auditUnavailable(test.err).Status()
			if status.Code != http.StatusServiceUnavailable || status.Details.RetryAfterSeconds != test.retryAfter || status.Details.Causes[0].Type != "audit_unavailable" {
				t.Errorf("%+v %+v, want Retry-After %d", status, status.Details, test.retryAfter)
			}
		})
	}
}
