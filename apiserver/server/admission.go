package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/kubernetes"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/webhookstore"
)

// admission finds the Site of a request and authenticates its caller.
type admission struct {
	sites  *sites.Sites
	access *kubernetes.Access
	// rights authorizes actions, by RBAC and the scopes of SMART tokens.
	rights    access.Authorizer
	ready     *readiness
	publicURL string
	resources *webhookstore.Client
	events    *kubernetes.Events
	limits    *limits.Limiter
}

// admit implements fhir.Config.Admit.
func (a *admission) admit(r *http.Request, siteID string) (fhir.Endpoint, access.Caller, error) {
	site, caller, err := a.admitSite(r, siteID)
	if err != nil {
		return fhir.Endpoint{}, caller, err
	}
	described := a.describe(site)
	if delegation, ok := delegationOf(r.Context()); ok {
		described.PagesURL = delegation.Base
	}
	described.Store, err = a.view(r, site, caller)
	return described, caller, err
}

// view returns the store of a Site as the caller of a request may use it, with the break-glass reason
// in the header of the request. It is nil while the store of the Site is not open. Errors:
// *access.HeaderError.
func (a *admission) view(r *http.Request, site sites.ServedSite, caller access.Caller) (store.Restricted, error) {
	reason, err := reasonIn(r.Header.Values(access.BreakGlassHeader))
	if err != nil {
		return nil, err
	}
	return a.openGate(r.Context(), site, caller, reason)
}

// admitSite identifies the Site and the caller of a request, and counts it against rate limits.
func (a *admission) admitSite(r *http.Request, siteID string) (sites.ServedSite, access.Caller, error) {
	if err := refusal(r.Context()); err != nil { // inflight.go
		return sites.ServedSite{}, access.Caller{}, err
	}
	site, caller, err := a.identify(r, siteID)
	if err := a.limit(r, site, caller, err); err != nil { // limits.go
		return sites.ServedSite{}, access.Caller{}, err
	}
	return site, caller, nil
}

// identify returns the Site and the caller of a request. kube-apiserver has authenticated the
// caller of a delegated request.
func (a *admission) identify(r *http.Request, siteID string) (sites.ServedSite, access.Caller, error) {
	began := time.Now()
	recorder := audit.From(r.Context())
	if delegation, ok := delegationOf(r.Context()); ok {
		site, err := a.findSite(siteID)
		recorder.At(auditOf(site))
		recorder.Caller(delegation.Caller)
		return site, delegation.Caller, err
	}
	site, found := a.sites.Find(siteID)
	if found {
		recorder.At(auditOf(site))
		recorder.Conceal(site.Access.Hidden)
	} else {
		recorder.At(audit.Sink{ID: siteID})
	}
	token, err := access.BearerToken(r.Header.Values("Authorization"))
	if err != nil {
		return sites.ServedSite{}, access.Caller{}, err
	}
	if !found && !a.ready.knowsSites() {
		// The Sites are still being listed, so a Site that is not found may exist.
		return sites.ServedSite{}, access.Caller{}, access.ErrUnavailable
	}
	if found && !site.Access.Hidden {
		caller, err := a.authenticate(r.Context(), site, token)
		if err != nil {
			return sites.ServedSite{}, access.Caller{}, err
		}
		recorder.Caller(caller)
		return site, caller, nil
	}
	caller, err := a.admitToHidden(r.Context(), site, token) // hidden_sites.go
	recorder.Caller(caller)
	if err != nil {
		access.AwaitAbsent(r.Context(), began)
		return sites.ServedSite{}, access.Caller{}, err
	}
	recorder.Conceal(false)
	return site, caller, nil
}

// find implements fhir.Config.Find: it returns the Site of a request that needs a token only if the
// Site is hidden. The token is also checked if there is no such Site, so that a hidden Site and a
// missing one fail in the same way while tokens cannot be checked.
func (a *admission) find(r *http.Request, siteID string) (fhir.Endpoint, error) {
	if err := a.limitAnonymous(r); err != nil {
		return fhir.Endpoint{}, err
	}
	began := time.Now()
	site, err := a.findSite(siteID)
	if errors.Is(err, access.ErrSiteHidden) || err == nil && site.Access.Hidden {
		if _, ok := delegationOf(r.Context()); !ok {
			site, err = a.findHidden(r, siteID)
		}
	}
	if errors.Is(err, access.ErrSiteHidden) {
		access.AwaitAbsent(r.Context(), began)
	}
	if err != nil {
		return fhir.Endpoint{}, err
	}
	described := a.describe(site)
	described.Store, err = a.closedGate(site)
	return described, err
}

// findSite returns a Site, hidden or not. Errors: access.ErrSiteHidden, access.ErrUnavailable.
func (a *admission) findSite(siteID string) (sites.ServedSite, error) {
	site, found := a.sites.Find(siteID)
	if !found && !a.ready.knowsSites() {
		return sites.ServedSite{}, access.ErrUnavailable
	}
	if !found {
		return sites.ServedSite{}, access.ErrSiteHidden
	}
	return site, nil
}

// addresses returns the base URLs of a Site. Links start with the first, which is the Site's own
// URL if it has one. The Host header is not used, because any client can forge it.
func (a *admission) addresses(site sites.ServedSite) []string {
	common := a.publicURL + "/site/" + site.ID
	if site.URL == "" || site.URL == common {
		return []string{common}
	}
	return []string{site.URL, common}
}

// fhirURLs returns the base URLs of a Site's FHIR API, in the order of addresses.
func (a *admission) fhirURLs(site sites.ServedSite) []string {
	urls := a.addresses(site)
	for i := range urls {
		urls[i] += "/fhir"
	}
	return urls
}

// describe returns what the FHIR API needs to know about a Site, without its store.
func (a *admission) describe(site sites.ServedSite) fhir.Endpoint {
	urls := a.fhirURLs(site)
	var log fhir.AuditLog
	if site.Audit != nil {
		log = site.Audit.Storage()
	}
	described := fhir.Endpoint{
		Settings: site.Settings, BaseURL: urls[0], OtherURLs: urls[1:], AuditLog: log, Issuer: describeIssuer(site.Issuers),
		Consoles: consoleClients(site.Issuers),
	}
	if site.ID != "" {
		described.Limiter = a.limitsOf(site)
	}
	return described
}

// auditOf returns where the requests of a Site are recorded.
func auditOf(site sites.ServedSite) audit.Sink { return audit.Sink{ID: site.ID, Log: site.Audit} }
