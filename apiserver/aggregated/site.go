package aggregated

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// ErrNoSite says that there is no site in a namespace.
var ErrNoSite = errors.New("there is no site in the namespace")

// Site is what this API needs to know of the site of a namespace.
type Site struct {
	// ID is the siteID.
	ID     string
	Access access.Site
	// Store is nil while the storage is not open.
	Store store.Store
	// UpdateCreate lets clients choose the names of new objects.
	UpdateCreate bool
	// EnforceReferences refuses references to records of this site that are not there, and
	// the deletion of what is referred to.
	EnforceReferences bool
	// MaxBodySize is the most bytes of a resource.
	MaxBodySize int64
	// Bases are the public addresses of the site's FHIR API: what refers there refers to its
	// records.
	Bases []string
}

// Sites finds the sites of namespaces.
type Sites interface {
	// Site returns the site in a namespace. Errors: ErrNoSite, and store.ErrUnavailable
	// while the sites are not known yet.
	Site(namespace string) (Site, error)
}

// livingSites are the sites of namespaces that are not going away. Where a namespace is,
// there is no site any more, whatever state its storage is in: no deletion waits for it.
type livingSites struct {
	Sites
	namespaces corelisters.NamespaceLister
}

// Site implements Sites.
func (s livingSites) Site(namespace string) (Site, error) {
	if known, err := s.namespaces.Get(namespace); err == nil && known.Status.Phase == corev1.NamespaceTerminating {
		return Site{}, ErrNoSite
	}
	return s.Sites.Site(namespace)
}

// site finds the site of a request, with its storage open.
func (r *resource) site(ctx context.Context) (Site, error) {
	site, err := r.sites.Site(request.NamespaceValue(ctx))
	if err == nil && site.Store == nil {
		err = fmt.Errorf("%w: the storage of site %s is not open", store.ErrUnavailable, site.Access.Name)
	}
	return site, err
}
