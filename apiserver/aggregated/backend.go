package aggregated

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

// ErrNoSite is returned if a namespace has no Site.
var ErrNoSite = errors.New("there is no site in the namespace")

// Backend is the Site behind a namespace.
type Backend struct {
	settings.Settings
	// Audit is the audit log in which the requests to the site are recorded.
	Audit audit.Sink
	// View returns the store restricted to what the caller may see and do. View is nil while the store
	// is not open.
	View func(ctx context.Context, caller access.Caller) (store.Restricted, error)
	// Store is the result of View for the request's caller. Sites does not set it.
	Store store.Restricted
	// Limiter limits requests and concurrent searches. If nil, there is no limit.
	Limiter *limits.SiteLimiter
	// Bases are the base URLs of the Site's FHIR API. An absolute reference below one of them
	// refers to a record of the Site.
	Bases []string
}

// Sites finds the Sites of namespaces.
type Sites interface {
	// Site returns the Site in a namespace. Errors: ErrNoSite, and store.ErrUnavailable until the
	// Sites have been listed.
	Site(namespace string) (Backend, error)
}

// livingSites are the Sites of namespaces that are not terminating. A terminating namespace has no
// Site, so that its deletion does not wait for the Site's storage.
type livingSites struct {
	Sites
	namespaces corelisters.NamespaceLister
}

// Site implements Sites.
func (s livingSites) Site(namespace string) (Backend, error) {
	if known, err := s.namespaces.Get(namespace); err == nil && known.Status.Phase == corev1.NamespaceTerminating {
		return Backend{}, ErrNoSite
	}
	return s.Sites.Site(namespace)
}

// site returns the Site of a request, with Store for its caller, and counts the request against the
// limits of the Site.
func (r *resource) site(ctx context.Context) (Backend, error) {
	site, err := r.sites.Site(request.NamespaceValue(ctx))
	if err == nil {
		err = takeRequest(ctx, site)
	}
	if err != nil {
		return Backend{}, err
	}
	if site.View == nil {
		return Backend{}, fmt.Errorf("%w: the storage of site %s is not open", store.ErrUnavailable, site.Access.Name)
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return Backend{}, err
	}
	site.Store, err = site.View(ctx, caller)
	return site, err
}

// takeRequest counts a request of the caller against the limits of a Site.
func takeRequest(ctx context.Context, site Backend) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	return site.Limiter.Admit(caller.Name)
}

// search waits until the request's caller may search. Call end after the search.
func search(ctx context.Context, site Backend) (end func(), err error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	return site.Limiter.Search(ctx, caller.Name)
}
