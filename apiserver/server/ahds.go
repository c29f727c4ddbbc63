package server

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// ahdsResources returns the resources of the AHDS API. A hidden Site exists for a caller with a
// right to any of them.
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

// newAHDS returns the handler of the AHDS API.
func (s *Server) newAHDS(rights access.Authorizer) (http.Handler, error) {
	return ahds.New(ahds.Config{
		Admit: func(r *http.Request, siteID string) (ahds.DataStore, access.Caller, error) {
			site, caller, err := s.admission.admitSite(r, siteID)
			if err != nil {
				return ahds.DataStore{}, caller, err
			}
			described := s.admission.describeAHDS(site)
			described.Store, err = s.admission.view(r, site, caller)
			described.Privileged = func(ctx context.Context) error { return s.admission.checkPrivileged(ctx, site, caller) }
			return described, caller, err
		},
		Find: func(r *http.Request, siteID string) (ahds.DataStore, error) {
			if err := s.admission.limitAnonymous(r); err != nil {
				return ahds.DataStore{}, err
			}
			site, err := s.admission.findSite(siteID)
			if err != nil {
				return ahds.DataStore{}, err
			}
			described := s.admission.describeAHDS(site)
			described.Store, err = s.admission.closedGate(site)
			return described, err
		},
		Authorizer: rights,
		Audit:      s.audit,
		HoldKeys:   s.config.Keys.Hold,
		FeedKeys:   s.config.Keys.Feed,
		Cursors:    &changeCursors{tokens: s.tokens, now: time.Now},
		ErrorPages: s.errorPages(),
		Traffic:    s.traffic.Report,
		Streams:    ahds.Streams{Stopping: s.stopping},
		Log:        s.config.Log,
		Now:        time.Now,
	})
}

// describeAHDS returns what the AHDS API needs to know about a Site, without its store.
func (a *admission) describeAHDS(site sites.ServedSite) ahds.DataStore {
	if site.ID == "" {
		return ahds.DataStore{}
	}
	return ahds.DataStore{
		Settings:      site.Settings,
		BaseURL:       a.addresses(site)[0] + "/ahds/v1",
		Audit:         auditOf(site),
		Events:        a.eventsOf(site),
		Limiter:       a.limitsOf(site),
		WebhookEvents: a.resources.WebhookEvents(site.Access.Namespace),
		Webhooks:      a.resources.Webhooks(site.Access.Namespace),
		Deliveries:    site.Deliveries,
		Tail:          site.Tail,
	}
}
