package site

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// stepDeleted takes the next step if the Site was deleted, or created again with another storage. done
// reports whether it did. If the retained data is in the former storage, it rolls the move back, which
// unlocks that storage. If the data is in the new storage, it stalls the move, which does not end then.
func (r *MoveReconciler) stepDeleted(ctx context.Context, s *moveScope) (done bool, err error) {
	if s.site != nil {
		if s.hasData(&s.site.Spec.Storage) {
			return false, nil
		}
		s.stall(v1alpha1.ReasonSiteNotReady, fmt.Sprintf(
			"Site %q was created again with a storage that does not have its data. Delete the Site, and create it with the spec.storage of %s.", s.move.Spec.SiteName, s.whereData()))
		return true, nil
	}
	claim, err := r.claimOf(ctx, s)
	if err != nil {
		return true, err
	}
	const deleted = "The Site was deleted during the move."
	switch {
	case claim == nil: // the data was deleted with the Site
		s.status.Phase, s.status.Failure = v1alpha1.MoveRolledBack, deleted
	case s.switched() || s.status.Direction == v1alpha1.MoveBack:
		s.stall(v1alpha1.ReasonSiteNotReady, fmt.Sprintf(
			"Site %q was deleted. Create it again with the spec.storage of %s, or delete SiteClaim %q to give up its data.", s.move.Spec.SiteName, s.whereData(), claim.Name))
	case s.status.Phase == v1alpha1.MoveRollingBack:
		return false, nil
	default:
		if err := r.noteExternal(ctx, claim, s.status.From); err != nil { // MoveSwitching may have changed the SiteClaim
			return true, err
		}
		if s.status.Placement != nil {
			if err := r.changePlacement(ctx, claim, s.status.FormerPlacement, s.status.Placement); err != nil {
				return true, err
			}
		}
		s.status.Phase, s.status.Failure = v1alpha1.MoveRollingBack, deleted
	}
	return true, nil
}

// hasData reports whether all acknowledged writes are in a storage. In MoveSwitching, both storages of the
// move have them.
func (s *moveScope) hasData(storage *v1alpha1.Storage) bool {
	switch {
	case s.status.Phase == v1alpha1.MoveSwitching:
		return true
	case s.switched():
		return sameDatabase(storage, s.to())
	default:
		return sameDatabase(storage, s.status.From)
	}
}

// whereData returns a text for people that names the field of the SiteMove with the storage that has the
// data.
func (s *moveScope) whereData() string {
	switch {
	case !s.switched():
		return fmt.Sprintf("status.from of SiteMove %q", s.move.Name)
	case s.status.ProvisionedName == provision.SecondName:
		return fmt.Sprintf("spec.to of SiteMove %q and postgres.provisioned.name %s", s.move.Name, provision.SecondName)
	default:
		return fmt.Sprintf("spec.to of SiteMove %q", s.move.Name)
	}
}

// sameDatabase reports whether two storages have the same data, whatever their sizes and limits. All
// databases of a pool are the same here, because the SiteClaim has the placement.
func sameDatabase(a, b *v1alpha1.Storage) bool {
	if a.Type != b.Type || a.Type != v1alpha1.StoragePostgres {
		return a.Type == b.Type
	}
	if isProvisioned(a) && isProvisioned(b) {
		return a.Postgres.Provisioned.Engine == b.Postgres.Provisioned.Engine &&
			provision.NameOf(&v1alpha1.Site{Spec: v1alpha1.SiteSpec{Storage: *a}}) == provision.NameOf(&v1alpha1.Site{Spec: v1alpha1.SiteSpec{Storage: *b}})
	}
	return isProvisioned(a) == isProvisioned(b) && equality.Semantic.DeepEqual(a.Postgres.External, b.Postgres.External)
}

// leftByMove returns a verdict if a Site that has not been served was created again during a SiteMove, and
// its data is in another storage than its own, which the Site must not use. Otherwise bad is nil. moving
// reports whether a SiteMove of the site key, within the namespace, has begun to copy and has not ended.
func (r *Reconciler) leftByMove(ctx context.Context, site *v1alpha1.Site, claim *v1alpha1.SiteClaim) (bad *verdict, moving bool, err error) {
	moves := &v1alpha1.SiteMoveList{}
	if err := r.Live.List(ctx, moves, client.InNamespace(site.Namespace)); err != nil {
		return nil, false, fmt.Errorf("list the SiteMoves of namespace %s: %w", site.Namespace, err)
	}
	for i := range moves.Items {
		move := &moveScope{move: &moves.Items[i], status: moves.Items[i].Status}
		if move.crosses() || move.status.SiteKey != claim.Spec.SiteKey || move.status.Phase == v1alpha1.MovePending || move.status.Phase.Ended() {
			continue
		}
		if move.hasData(&site.Spec.Storage) {
			return nil, true, nil
		}
		return foreignRecords("A SiteMove has not ended, and the retained data of the Site is in another storage. "+
			"Delete the Site, and create it with the spec.storage of %s.", move.whereData()), true, nil
	}
	return nil, false, nil
}
