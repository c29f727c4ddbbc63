package site

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// reservedConnection returns the connection to the database of the pool that a move goes to. If the
// SiteClaim has no reserved database, it chooses one and writes it there, so that no other Site takes
// the place. It notes the new and the former placement in s.status. If the verdict is not nil, it says
// why there is no connection. target is the Site with the new storage.
func (r *MoveReconciler) reservedConnection(ctx context.Context, s *moveScope, target *v1alpha1.Site) (dsn.Connection, *verdict, error) {
	claim, err := r.claimOf(ctx, s)
	if err != nil || claim == nil {
		return dsn.Connection{}, &noStorage, err
	}
	if claim.Spec.Reserved == nil {
		var class *v1alpha1.SiteClass
		name := target.Class()
		if s.move.Labels[v1alpha1.DrainLabel] != "" && claim.Spec.Placement != nil { // the Site may have left the class
			name = claim.Spec.Placement.ClassName
		}
		if name != "" {
			if class, err = find[v1alpha1.SiteClass](ctx, r.Live, client.ObjectKey{Name: name}); err != nil {
				return dsn.Connection{}, nil, err
			}
		}
		r.placements.Lock()
		defer r.placements.Unlock()
		placement, bad, err := r.findRoom(ctx, class, target.Spec.Storage.Postgres.Pool.Region, claim.Spec.Placement)
		if bad != nil || err != nil {
			return dsn.Connection{}, bad, err
		}
		claim.Spec.Reserved = placement
		if err := r.writePlacement(ctx, claim); err != nil {
			return dsn.Connection{}, nil, err
		}
	}
	s.status.Placement, s.status.FormerPlacement = claim.Spec.Reserved, claim.Spec.Placement
	return r.placedConnection(ctx, claim.Spec.Reserved)
}

// switchPlacement writes to the SiteClaim which database of the pool serves the Site after the switch: the
// new database, or the former one if former is true. The other database remains reserved until the move
// has ended. If the storage after the switch is not in a pool, switchPlacement does nothing: the SiteClaim
// keeps its placement until the move has ended, see releasePlacement.
func (r *MoveReconciler) switchPlacement(ctx context.Context, s *moveScope, former bool) error {
	serving, other := s.status.Placement, s.status.FormerPlacement
	if former {
		serving, other = other, serving
	}
	if serving == nil {
		return nil
	}
	claim, err := r.claimOf(ctx, s)
	if err != nil || claim == nil {
		return err
	}
	return r.changePlacement(ctx, claim, serving, other)
}

// releaseReserved removes the reservation of a move that has ended, unless the Site has another move by now.
func (r *MoveReconciler) releaseReserved(ctx context.Context, s *moveScope) error {
	if s.site != nil && s.site.Status.Move != nil && s.site.Status.Move.UID != string(s.move.UID) {
		return nil
	}
	claim, err := r.claimOf(ctx, s)
	if err != nil || claim == nil {
		return err
	}
	return r.changePlacement(ctx, claim, claim.Spec.Placement, nil)
}

func (r *MoveReconciler) changePlacement(ctx context.Context, claim *v1alpha1.SiteClaim, placement, reserved *v1alpha1.Placement) error {
	changed := claim.DeepCopy()
	changed.Spec.Placement, changed.Spec.Reserved = placement, reserved
	if equality.Semantic.DeepEqual(claim.Spec, changed.Spec) {
		return nil
	}
	return r.updateClaim(ctx, changed)
}
