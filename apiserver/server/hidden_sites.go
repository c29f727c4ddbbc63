package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// admitToHidden authenticates the caller of a hidden Site, or of a Site that does not exist, whose
// ID is empty. It returns access.ErrSiteHidden to a caller without any right on a hidden Site, so
// that the response is that of a Site that does not exist.
func (a *admission) admitToHidden(ctx context.Context, site sites.ServedSite, token string) (access.Caller, error) {
	if site.ID == "" {
		return a.access.Authenticate(ctx, nil, token)
	}
	caller, err := a.authenticate(ctx, site, token)
	if err != nil {
		return access.Caller{}, err
	}
	if hasScope(caller) { // scopes.go
		return caller, nil
	}
	visible, err := a.access.HasAnyRight(ctx, caller, site.Access)
	if err == nil && !visible {
		err = access.ErrSiteHidden
	}
	return caller, err
}

// findHidden returns a hidden Site for a request that needs no token at other Sites. The token of
// such a request has no effect at a Site that does not exist. An invalid token is therefore
// answered like a missing right.
func (a *admission) findHidden(r *http.Request, siteID string) (sites.ServedSite, error) {
	site, _, err := a.identify(r, siteID)
	if err != nil && !errors.Is(err, access.ErrUnavailable) {
		return sites.ServedSite{}, access.ErrSiteHidden
	}
	return site, err
}
