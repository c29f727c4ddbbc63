package server

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// limitsOf returns the limiter of a Site, with its current limits.
func (a *admission) limitsOf(site sites.ServedSite) *limits.SiteLimiter {
	return a.limits.Site(site.ID, limits.From(site.Limits))
}

// limit counts a request against rate limits. If refusal is nil, the request counts against those
// of the Site and the caller. Otherwise it counts against that of its client address, and limit
// returns refusal unless that limit is exceeded. Clients with valid tokens are not limited by
// address, because many clients can share one. Errors: *limits.ExceededError, refusal.
func (a *admission) limit(r *http.Request, site sites.ServedSite, caller access.Caller, refusal error) error {
	if refusal == nil {
		return a.limitsOf(site).Admit(caller.Name)
	}
	if err := a.limitAnonymous(r); err != nil {
		return err
	}
	return refusal
}

// limitAnonymous counts a request without a caller against the limit of its client address. Errors:
// *limits.ExceededError.
func (a *admission) limitAnonymous(r *http.Request) error {
	if err := refusal(r.Context()); err != nil { // inflight.go
		return err
	}
	return a.limits.Anonymous(hostOf(r.RemoteAddr))
}
