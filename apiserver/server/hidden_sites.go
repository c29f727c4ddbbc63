package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// admitToHidden authenticates the caller of a hidden Site, or of a Site that does not exist, whose ID
// is empty. A token that gives no right to a hidden Site gets the error that it gets at a Site that
// does not exist, even if the Site's issuers refuse it with another error. The caller of such a token
// is returned for the audit log. Errors: access.ErrSiteHidden, *access.TokenError,
// access.ErrUnavailable.
func (a *admission) admitToHidden(ctx context.Context, site sites.ServedSite, token string) (caller access.Caller, err error) {
	if site.ID != "" {
		if caller, err = a.authenticate(ctx, site, token); err == nil {
			visible, err := a.isVisible(ctx, site, caller)
			if visible || err != nil {
				return caller, err
			}
		}
	}
	_, err = a.access.Authenticate(ctx, nil, token)
	return caller, err
}

// isVisible reports whether the caller has any right to a hidden Site. Errors: access.ErrUnavailable.
func (a *admission) isVisible(ctx context.Context, site sites.ServedSite, caller access.Caller) (bool, error) {
	if hasScope(caller) { // scopes.go
		return true, nil
	}
	return a.access.HasAnyRight(ctx, caller, site.Access)
}

// findHidden returns a hidden Site for a request that needs no token at other Sites. At a Site that
// does not exist, the token of such a request makes no difference. An invalid token therefore gets the
// same error as a missing right: access.ErrSiteHidden.
func (a *admission) findHidden(r *http.Request, siteID string) (sites.ServedSite, error) {
	site, _, err := a.identify(r, siteID)
	if err != nil && !errors.Is(err, access.ErrUnavailable) {
		return sites.ServedSite{}, access.ErrSiteHidden
	}
	return site, err
}
