package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// errNotLeader means that another controller may be placing Sites.
var errNotLeader = errors.New("this process no longer holds the Lease of the leader")

// placements has the SiteClaims by which Sites are placed on the databases of pools. A database has only as
// many Sites as its capacity allows because of three rules:
//   - placements is locked from the decision about a placement until it is written.
//   - The Lease is read from kube-apiserver before each decision, so a process that was suspended before a
//     decision until another one became the leader decides nothing.
//   - A decision considers all placements of former leaders and of this process, although the cache may not
//     have them yet.
type placements struct {
	sync.Mutex
	// read reports whether the SiteClaims have been read from kube-apiserver in this process, and the outcome
	// of all writes since is known.
	read bool
	// newer has the SiteClaims that may be newer than those of the cache, by name. latest is the largest
	// resourceVersion of them.
	newer  map[string]v1alpha1.SiteClaim
	latest string
	// cached returns the resourceVersion up to which the cache has the SiteClaims.
	cached func() string
}

// setupPlacements prepares placements. The cache of the manager need not have been started.
func (r *Reconciler) setupPlacements(ctx context.Context, mgr ctrl.Manager) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.SiteClaim{})
	if err != nil {
		return fmt.Errorf("watch the SiteClaims: %w", err)
	}
	shared, ok := informer.(cache.SharedInformer)
	if !ok {
		return fmt.Errorf("the informer of SiteClaims is a %T, want a shared informer", informer)
	}
	r.placements.cached = shared.GetStore().LastStoreSyncResourceVersion
	return nil
}

// placedClaims returns the SiteClaims for a decision about a placement. A SiteClaim that was deleted a moment
// ago may be among them. The caller has locked placements until it has written the placement.
func (r *Reconciler) placedClaims(ctx context.Context) ([]v1alpha1.SiteClaim, error) {
	p := &r.placements
	if err := r.checkLeader(ctx); err != nil {
		return nil, err
	}
	claims := &v1alpha1.SiteClaimList{}
	// Without leader election, other controllers can place Sites at any time.
	if !p.read || r.Identity == "" {
		if err := r.Live.List(ctx, claims); err != nil {
			return nil, fmt.Errorf("list the SiteClaims: %w", err)
		}
		p.read = true
		for i := range claims.Items {
			p.note(claims.Items[i])
		}
		return claims.Items, nil
	}
	p.forgetCached()
	if err := r.Client.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the SiteClaims of the cache: %w", err)
	}
	return withNewer(claims.Items, p.newer), nil
}

// checkLeader returns errNotLeader if another controller has become the leader.
func (r *Reconciler) checkLeader(ctx context.Context) error {
	if r.Identity == "" {
		return nil
	}
	lease := &coordinationv1.Lease{}
	if err := r.Live.Get(ctx, r.Lease, lease); err != nil {
		return fmt.Errorf("read the Lease of the leader: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != r.Identity {
		return errNotLeader
	}
	return nil
}

// writePlacement writes a SiteClaim with a new placement, unless it has changed since it was read. The caller
// has locked placements.
func (r *Reconciler) writePlacement(ctx context.Context, claim *v1alpha1.SiteClaim) error {
	err := r.updateClaim(ctx, claim)
	switch {
	case err == nil:
		r.placements.note(*claim)
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		r.placements.read = false // the write may have succeeded
	}
	return err
}

// note adds a SiteClaim that the cache may not have yet.
func (p *placements) note(claim v1alpha1.SiteClaim) {
	if p.newer == nil {
		p.newer = map[string]v1alpha1.SiteClaim{}
	}
	p.newer[claim.Name] = claim
	if older(p.latest, claim.ResourceVersion) {
		p.latest = claim.ResourceVersion
	}
}

// forgetCached empties newer if the cache has all of it.
func (p *placements) forgetCached() {
	if p.latest != "" && !older(p.cached(), p.latest) {
		p.newer, p.latest = nil, ""
	}
}

// withNewer returns the SiteClaims of the cache and those of newer. Of a SiteClaim that is in both, it
// returns the one with the larger resourceVersion.
func withNewer(cached []v1alpha1.SiteClaim, newer map[string]v1alpha1.SiteClaim) []v1alpha1.SiteClaim {
	if len(newer) == 0 {
		return cached
	}
	merged := make([]v1alpha1.SiteClaim, 0, len(cached)+len(newer))
	both := map[string]bool{}
	for _, claim := range cached {
		if other, ok := newer[claim.Name]; ok {
			both[claim.Name] = true
			if older(claim.ResourceVersion, other.ResourceVersion) {
				claim = other
			}
		}
		merged = append(merged, claim)
	}
	for name, claim := range newer {
		if !both[name] {
			merged = append(merged, claim)
		}
	}
	return merged
}

// older reports whether resourceVersion a is smaller than b, which must be valid. An invalid a, such as
// that of a cache that has no SiteClaims yet, is smaller than any b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(cmp.Or(a, "1"), b)
	return err != nil || order < 0
}
