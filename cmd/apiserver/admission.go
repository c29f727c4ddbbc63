package main

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/kubernetes"
	"github.com/paddock-health/paddock/apiserver/customresources"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// admission finds the site of a request and authenticates its caller.
type admission struct {
	sites     *sites.Sites
	access    *kubernetes.Access
	ready     *readiness
	publicURL string
	resources *customresources.Client
}

func (a *admission) admit(r *http.Request, siteID string) (fhir.Site, access.Caller, error) {
	site, caller, err := a.admitSite(r, siteID)
	described := a.describe(site)
	if visit, visits := visitOf(r.Context()); visits {
		described.PagesURL = visit.Base
	}
	return described, caller, err
}

// admitSite is admit for either facade. A visitor has been identified.
func (a *admission) admitSite(r *http.Request, siteID string) (sites.Site, access.Caller, error) {
	if visit, visits := visitOf(r.Context()); visits {
		site, err := a.findSite(siteID)
		return site, visit.Caller, err
	}
	token, err := access.BearerToken(r.Header.Get("Authorization"))
	if err != nil {
		return sites.Site{}, access.Caller{}, err
	}
	site, found := a.sites.Find(siteID)
	if !found && !a.ready.knowsSites() {
		// Nobody can tell yet whether there is such a site.
		return sites.Site{}, access.Caller{}, access.ErrUnavailable
	}
	if !found {
		caller, err := a.access.Authenticate(r.Context(), nil, token)
		return sites.Site{}, caller, err
	}
	caller, err := a.access.Authenticate(r.Context(), &site.Access, token)
	if err != nil {
		return sites.Site{}, access.Caller{}, err
	}
	return site, caller, nil
}

// find finds the site of a request that needs no token.
func (a *admission) find(siteID string) (fhir.Site, error) {
	site, err := a.findSite(siteID)
	return a.describe(site), err
}

// findSite is find for either facade.
func (a *admission) findSite(siteID string) (sites.Site, error) {
	site, found := a.sites.Find(siteID)
	if !found && !a.ready.knowsSites() {
		return sites.Site{}, access.ErrUnavailable
	}
	if !found {
		return sites.Site{}, access.ErrSiteHidden
	}
	return site, nil
}

// addresses are those of a site: first the one with which its links begin, which is its own
// where it has one. The Host header of a request has no say in it: anybody can write one.
func (a *admission) addresses(site sites.Site) []string {
	common := a.publicURL + "/site/" + site.ID
	if site.URL == "" || site.URL == common {
		return []string{common}
	}
	return []string{site.URL, common}
}

// fhirURLs are the addresses of a site's FHIR API.
func (a *admission) fhirURLs(site sites.Site) []string {
	urls := a.addresses(site)
	for i := range urls {
		urls[i] += "/fhir"
	}
	return urls
}

// describe tells the facade of a site.
func (a *admission) describe(site sites.Site) fhir.Site {
	urls := a.fhirURLs(site)
	return fhir.Site{
		ID:               site.ID,
		BaseURL:          urls[0],
		OtherURLs:        urls[1:],
		Access:           site.Access,
		Store:            site.Store,
		UpdateCreate:     site.UpdateCreate,
		MaxBodySize:      site.MaxBodySize,
		MaxBundleEntries: site.MaxBundleEntries,
		MaxIncluded:      site.MaxIncluded,
		Lenient:          site.Lenient,
		Zone:             site.Zone,

		EnforceReferences: site.EnforceReferences,
		CORS:              site.CORS != nil,
	}
}
