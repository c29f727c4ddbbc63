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

// Authorize implements access.Authorizer by Kubernetes RBAC in the Site's namespace. It first checks
// the right to all objects of a resource, because the cached result applies to requests for every
// record.
func (a *Access) Authorize(ctx context.Context, caller access.Caller, site access.Tenant, action access.Action) error {
	wide := action
	wide.Name = ""
	allowed, err := a.allowed(ctx, caller, site, wide)
	if err == nil && !allowed && action.Name != "" {
		allowed, err = a.allowed(ctx, caller, site, action)
	}
	if allowed || err != nil {
		return err
	}
	return &access.ForbiddenError{Caller: caller.Name, Action: action}
}

// rightKey is the cache key of a right.
type rightKey struct {
	caller string
	action access.Action
}

// identity returns a key of all fields of a caller on which rights can depend. Each part has its
// length as a prefix, so that different callers have different keys.
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

// allowed reports whether a caller has a right, from the cache or by a SubjectAccessReview. The
// cache of the library is not used: computing its key costs as much as a search, and all Sites
// would share the cache.
func (a *Access) allowed(ctx context.Context, caller access.Caller, site access.Tenant, action access.Action) (bool, error) {
	if caller.Identity == "" {
		caller.Identity = identity(caller)
	}
	found := a.caches.of(site.Namespace).rights.get(rightKey{caller.Identity, action})
	if found == nil || !a.isCurrent(site.Namespace, found.reviewed, rightsTTL, watchedRightsTTL) {
		return a.reviewRight(ctx, caller, site, action)
	}
	if a.now().Sub(found.reviewed) > watchedRightsTTL/2 {
		a.renewRight(ctx, found, caller, site, action)
	}
	return found.allowed, nil
}

// renewRight reviews a cached right again in the background. It is not part of allowed, which would then
// allocate the variables of the closure in each call.
func (a *Access) renewRight(ctx context.Context, found *result, caller access.Caller, site access.Tenant, action access.Action) {
	a.renew(ctx, &found.renewal, func(ctx context.Context) { _, _ = a.reviewRight(ctx, caller, site, action) })
}

// reviewRight reports whether a caller has a right, and caches the result by caller.Identity, which must be
// set. Errors: access.ErrUnavailable.
func (a *Access) reviewRight(ctx context.Context, caller access.Caller, site access.Tenant, action access.Action) (bool, error) {
	began := a.now()
	allowed, err := a.reviewAccess(ctx, caller, site, action)
	if err == nil {
		a.caches.of(site.Namespace).rights.add(rightKey{caller.Identity, action}, &result{allowed: allowed, reviewed: began}, watchedRightsTTL)
	}
	return allowed, err
}

// reviewAccess reports whether a caller has a right, by a SubjectAccessReview. A refusal is reviewed
// again if kube-apiserver may not have been ready. Errors: access.ErrUnavailable.
func (a *Access) reviewAccess(ctx context.Context, caller access.Caller, site access.Tenant, action access.Action) (bool, error) {
	ctx, cancel := withReviewTimeout(ctx)
	defer cancel()
	resource, subresource, _ := strings.Cut(action.Resource, "/")
	attributes := authorizer.AttributesRecord{
		User:      &user.DefaultInfo{Name: caller.Name, UID: caller.UID, Groups: caller.Groups, Extra: caller.Extra},
		Verb:      action.Verb,
		Namespace: site.Namespace,
		APIGroup:  action.Group, APIVersion: "*",
		Resource: resource, Subresource: subresource, Name: action.Name,
		ResourceRequest: true,
	}
	decision, _, err := a.rights.Authorize(ctx, attributes)
	if err == nil && decision != authorizer.DecisionAllow {
		var isNew bool
		if isNew, err = a.ready.confirm(ctx); err == nil && isNew {
			decision, _, err = a.rights.Authorize(ctx, attributes)
		}
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	a.answered.Store(a.now().UnixNano())
	return decision == authorizer.DecisionAllow, nil
}
