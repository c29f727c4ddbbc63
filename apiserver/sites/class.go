package sites

import (
	"context"
	"log/slog"

	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
)

// completeByClass completes a Site by its class, if it names one. It reports false if the class is not
// known. The Site must then not be served: without the privacy rules of the class, more records would
// be visible.
func (s *Sites) completeByClass(ctx context.Context, site *sitesv1.Site) bool {
	if site.Class() == "" {
		return true
	}
	var class sitesv1.SiteClass
	if err := s.cache.Get(ctx, client.ObjectKey{Name: site.Class()}, &class); err != nil {
		slog.WarnContext(ctx, "a site is not served, because its SiteClass cannot be read", "site", site.Namespace+"/"+site.Name, "class", site.Class(), "error", err)
		return false
	}
	*site = *class.Complete(site)
	return true
}

// onlyClassStatus reports whether the objects are a SiteClass before and after a change of only its
// status or metadata. The status changes with each Site of the class, and does not affect how Sites
// are served.
func onlyClassStatus(before, after any) bool {
	old, ok := before.(*sitesv1.SiteClass)
	if !ok {
		return false
	}
	class, ok := after.(*sitesv1.SiteClass)
	return ok && old.UID == class.UID && old.Generation == class.Generation
}

// classChanged refreshes the Sites of a class.
func (s *Sites) classChanged(ctx context.Context, name string) {
	var list sitesv1.SiteList
	if err := s.cache.List(ctx, &list); err != nil {
		slog.ErrorContext(ctx, "cannot list the sites of a changed SiteClass", "class", name, "error", err)
		return
	}
	for i := range list.Items {
		if list.Items[i].Class() == name {
			s.refresh(ctx, list.Items[i].SiteID())
		}
	}
}
