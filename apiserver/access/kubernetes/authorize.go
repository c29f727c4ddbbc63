package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// question is what a right is remembered by.
type question struct {
	caller, namespace string
	action            access.Action
}

// identity is all of a caller that rights can hang on, each part with its length, so
// that none can pass for two.
func identity(caller access.Caller) string {
	var all strings.Builder
	write := func(parts ...string) {
		for _, part := range parts {
			all.WriteString(strconv.Itoa(len(part)))
			all.WriteByte(':')
			all.WriteString(part)
		}
		all.WriteByte('.')
	}
	write(caller.Name, caller.UID)
	write(caller.Groups...)
	for _, key := range slices.Sorted(maps.Keys(caller.Extra)) {
		write(key)
		write(caller.Extra[key]...)
	}
	return all.String()
}

// allowed asks for a right, or remembers it: the key that the library's own cache makes
// of each question costs as much as a search.
func (a *Access) allowed(ctx context.Context, caller access.Caller, site access.Site, action access.Action) (bool, error) {
	if caller.Identity == "" {
		caller.Identity = identity(caller)
	}
	q := question{caller.Identity, site.Namespace, action}
	if answer, ok := a.answers.Get(q); ok {
		return answer.(bool), nil
	}
	allowed, err := a.ask(ctx, caller, site, action)
	if err == nil {
		a.answers.Add(q, allowed, rightsTTL/2)
	}
	return allowed, err
}

func (a *Access) ask(ctx context.Context, caller access.Caller, site access.Site, action access.Action) (bool, error) {
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
