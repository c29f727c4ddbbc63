package kubernetes

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access"
)

const (
	// verdictTTL is how long the result of HasAnyRight is cached.
	verdictTTL = time.Minute
	// verdictParallelism is how many SubjectAccessReviews of one verdict run concurrently.
	verdictParallelism = 8
)

var verbs = []string{"list", "get", "create", "update", "patch", "delete", "purge"}

// errFound cancels the remaining reviews of a verdict.
var errFound = errors.New("the caller has a right")

// HasAnyRight reports whether a caller has any right to a hidden Site. Such a right is to get the
// Site object, or to use one of verbs on all objects of one of New's resources. Rights to single
// objects (resourceNames) and other verbs, such as privileged, do not count. HasAnyRight caches the
// result until the objects of RBAC change, for up to verdictTTL. Errors: access.ErrUnavailable.
func (a *Access) HasAnyRight(ctx context.Context, caller access.Caller, site access.Tenant) (bool, error) {
	if caller.Identity == "" {
		caller.Identity = identity(caller)
	}
	verdicts := a.caches.of(site.Namespace).verdicts
	if found := verdicts.get(caller.Identity); found != nil && a.isCurrent(site.Namespace, found.reviewed, verdictTTL, verdictTTL) {
		return found.allowed, nil
	}
	// Concurrent requests of one caller share the reviews, so the reviews must outlive the context
	// of the first request.
	shared, err, _ := a.verdicts.Do(site.Namespace+"\x00"+caller.Identity, func() (any, error) {
		began := a.now()
		found, err := a.findRight(context.WithoutCancel(ctx), caller, site)
		if err == nil {
			verdicts.add(caller.Identity, &result{allowed: found, reviewed: began}, verdictTTL)
		}
		return found, err
	})
	return err == nil && shared.(bool), err
}

// findRight reviews the most common right first. If the caller lacks it, findRight reviews all
// other rights, verdictParallelism at a time, until one is found.
func (a *Access) findRight(ctx context.Context, caller access.Caller, site access.Tenant) (bool, error) {
	found, err := a.reviewAccess(ctx, caller, site, access.Action{Verb: "get", Group: "paddock.health", Resource: "sites", Name: site.Name})
	if found || err != nil {
		return found, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(verdictParallelism)
	for _, verb := range verbs {
		for _, resource := range a.resources {
			group.Go(func() error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				allowed, err := a.reviewAccess(ctx, caller, site, access.Action{Verb: verb, Group: resource.Group, Resource: resource.Resource})
				if err == nil && allowed {
					return errFound
				}
				return err
			})
		}
	}
	err = group.Wait()
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
