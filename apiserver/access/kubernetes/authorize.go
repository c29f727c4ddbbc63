package kubernetes

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/paddock-health/paddock/apiserver/access"
)

var _ access.Authorizer = (*Access)(nil)

// Authorize implements access.Authorizer by Kubernetes RBAC in the site's
// namespace. A right on all objects of a resource is asked for first: its answer
// serves every later request, whichever record that is about.
func (a *Access) Authorize(ctx context.Context, caller access.Caller, site access.Site, action access.Action) error {
	wide := action
	wide.Name = ""
	allowed, err := a.allowed(ctx, caller, site, wide)
	if err == nil && !allowed && action.Name != "" {
		allowed, err = a.allowed(ctx, caller, site, action)
	}
	if allowed || err != nil {
		return err
	}
	visible, err := a.visible(ctx, caller, site)
	if err != nil {
		return err
	}
	if !visible {
		return access.ErrSiteHidden
	}
	return &access.ForbiddenError{Caller: caller.Name, Action: action}
}

var verbs = []string{"list", "get", "create", "update", "patch", "delete"}

// visible reports whether the caller has any right on a site: to read the Site
// object, or to do anything with any of its records.
func (a *Access) visible(ctx context.Context, caller access.Caller, site access.Site) (bool, error) {
	allowed, err := a.allowed(ctx, caller, site, access.Action{Verb: "get", Group: "paddock.health", Resource: "sites", Name: site.Name})
	if allowed || err != nil {
		return allowed, err
	}
	for _, verb := range verbs {
		for _, resource := range a.resources {
			allowed, err := a.allowed(ctx, caller, site, access.Action{Verb: verb, Group: resource.Group, Resource: resource.Resource})
			if allowed || err != nil {
				return allowed, err
			}
		}
	}
	return false, nil
}

func (a *Access) allowed(ctx context.Context, caller access.Caller, site access.Site, action access.Action) (bool, error) {
	ctx, cancel := withReviewTimeout(ctx)
	defer cancel()
	decision, _, err := a.rights.Authorize(ctx, authorizer.AttributesRecord{
		User:      &user.DefaultInfo{Name: caller.Name, UID: caller.UID, Groups: caller.Groups, Extra: caller.Extra},
		Verb:      action.Verb,
		Namespace: site.Namespace,
		APIGroup:  action.Group, APIVersion: "*",
		Resource: action.Resource, Name: action.Name,
		ResourceRequest: true,
	})
	if err != nil {
		return false, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	return decision == authorizer.DecisionAllow, nil
}
