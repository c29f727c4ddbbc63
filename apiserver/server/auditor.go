//go:build !unaudited

package server

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
)

// newAuditor returns the Auditor that records the requests of every API.
func newAuditor(lines *audit.Lines) *audit.Auditor {
	return &audit.Auditor{Lines: lines, Now: time.Now}
}
