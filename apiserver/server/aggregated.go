package server

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/store"
)

// startAggregated serves the aggregated API until ctx ends, if it is configured. The returned
// function stops the API and waits for open requests until the context that it gets ends.
func (s *Server) startAggregated(ctx context.Context, group *errgroup.Group) (stop func(context.Context)) {
	if s.config.Aggregated == nil {
		return func(context.Context) {}
	}
	config := *s.config.Aggregated
	config.Sites, config.Authorizer, config.Audit = s.admission, s.admission.rights, s.audit
	config.Pages = &continueTokens{tokens: s.tokens, now: time.Now}
	config.Facades = map[string]aggregated.Facade{"fhir": delegated("fhir", s.handler), "ahds": delegated("ahds", s.handler)}
	config.Trace, config.DrainTime = s.config.Tracing.resources, drainTime
	config.Started = func() {
		s.config.Log.InfoContext(ctx, "serving the aggregated API", "listen", config.Address)
		s.ready.aggregatedStarted()
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	group.Go(func() error {
		defer close(ended)
		return aggregated.Run(ctx, config)
	})
	return func(drained context.Context) {
		cancel()
		select {
		case <-ended:
		case <-drained.Done():
		}
	}
}

// Site implements aggregated.Sites. Errors: store.ErrUnavailable while the Sites are being listed,
// aggregated.ErrNoSite if the namespace has no Site.
func (a *admission) Site(namespace string) (aggregated.Backend, error) {
	if !a.ready.knowsSites() {
		return aggregated.Backend{}, fmt.Errorf("%w: the sites are being listed", store.ErrUnavailable)
	}
	site, found := a.sites.InNamespace(namespace)
	if !found {
		return aggregated.Backend{}, aggregated.ErrNoSite
	}
	var view func(context.Context, access.Caller) (store.Restricted, error)
	if site.Store != nil {
		view = func(ctx context.Context, caller access.Caller) (store.Restricted, error) {
			return a.openGate(ctx, site, caller, "")
		}
	}
	return aggregated.Backend{
		Settings: site.Settings, Audit: auditOf(site), View: view, Limiter: a.limitsOf(site), Bases: a.fhirURLs(site),
	}, nil
}
