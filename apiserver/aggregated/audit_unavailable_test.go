package aggregated

import (
	"net/http"
	"testing"

	"github.com/paddock-health/paddock/apiserver/audit"
)

func TestAuditUnavailable(t *testing.T) {
	status := auditUnavailable(audit.ErrUnavailable).Status()
	if status.Code != http.StatusServiceUnavailable || status.Details.RetryAfterSeconds != retryAfter || status.Details.Causes[0].Type != "audit_unavailable" {
		t.Errorf("%+v", status)
	}
}
