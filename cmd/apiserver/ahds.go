package main

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
)

// extractVersion, extract and isFacet are for the records of both facades. Their types
// and parameters have different names, but for some that mean the same.
const extractVersion = fhir.ExtractVersion + ahds.ExtractVersion

func extract(recordType string, body []byte) []store.Entry {
	if ahds.Has(recordType) {
		return ahds.Extract(recordType, body)
	}
	return fhir.Extract(recordType, body)
}

func isFacet(param string) bool { return fhir.IsFacet(param) || ahds.IsFacet(param) }

// ahdsResources are those of the AHDS facade, a right on any of which shows a caller that
// a site exists.
func ahdsResources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, resource := range ahds.Resources {
		all = append(all, schema.GroupResource{Group: ahds.Group, Resource: resource})
	}
	for _, resource := range ahds.CustomResources {
		all = append(all, schema.GroupResource{Group: ahds.ResourceGroup, Resource: resource})
	}
	return all
}

// newAHDS makes the AHDS facade.
func (s *server) newAHDS(rights access.Authorizer) (http.Handler, error) {
	return ahds.New(ahds.Config{
		Admit: func(r *http.Request, siteID string) (ahds.Site, access.Caller, error) {
			site, caller, err := s.admission.admitSite(r, siteID)
			return s.admission.describeAHDS(site), caller, err
		},
		Find: func(siteID string) (ahds.Site, error) {
			site, err := s.admission.findSite(siteID)
			return s.admission.describeAHDS(site), err
		},
		Authorizer: rights,
		TokenKey:   s.options.tokenKey,
		Log:        s.log,
		Now:        time.Now,
	})
}

// describeAHDS tells the AHDS facade of a site.
func (a *admission) describeAHDS(site sites.Site) ahds.Site {
	if site.ID == "" {
		return ahds.Site{}
	}
	return ahds.Site{
		ID:          site.ID,
		BaseURL:     a.addresses(site)[0] + "/ahds/v1",
		Access:      site.Access,
		Store:       site.Store,
		MaxBodySize: site.MaxBodySize,

		WebhookEvents: a.resources.WebhookEvents(site.Access.Namespace),
		Webhooks:      a.resources.Webhooks(site.Access.Namespace),
	}
}
