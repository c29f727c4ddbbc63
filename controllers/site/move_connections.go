package site

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// renewConnections publishes the connections of a move again if the Secrets of its databases have other
// credentials by now, because a move can wait for its decision for days. It ignores a Secret that names
// another database. The credentials of provisioned databases are not renewed.
func (r *MoveReconciler) renewConnections(ctx context.Context, s *moveScope) error {
	if s.status.Phase == v1alpha1.MovePending {
		return nil
	}
	if s.site != nil {
		if err := r.renewConnection(ctx, s, v1alpha1.MoveFromName(s.move.Namespace), s.site, s.status.From, s.status.FormerPlacement); err != nil {
			return err
		}
	}
	site, storage := s.site, s.to()
	if s.target != nil {
		site, storage = s.target, &s.target.Spec.Storage
	}
	if site == nil {
		return nil
	}
	return r.renewConnection(ctx, s, v1alpha1.MoveToName(s.move.Namespace), site, storage, s.status.Placement)
}

// renewConnection renews the connection in the Secret secretName of the move. storage is the storage of a
// Site. placement is its database in a pool, or nil for that in the SiteClaim.
func (r *MoveReconciler) renewConnection(ctx context.Context, s *moveScope, secretName string, site *v1alpha1.Site, storage *v1alpha1.Storage, placement *v1alpha1.Placement) error {
	if storage == nil || storage.Postgres == nil || storage.Postgres.Provisioned != nil {
		return nil
	}
	published, there, err := r.namedConnection(ctx, secretName, s.status.SiteKey)
	if err != nil || !there {
		return err
	}
	var current dsn.Connection
	var bad *verdict
	if storage.Postgres.Pool == nil {
		current, bad, err = r.connectionOf(ctx, &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace}, Spec: v1alpha1.SiteSpec{Storage: *storage}})
	} else {
		if placement == nil { // of a Site that leaves the pool
			claim, err := r.claimOf(ctx, s)
			if err != nil || claim == nil || claim.Spec.Placement == nil {
				return err
			}
			placement = claim.Spec.Placement
		}
		current, bad, err = r.placedConnection(ctx, placement)
	}
	if err != nil || bad != nil || !current.SameDatabase(published) {
		return err
	}
	owner := s.site
	if owner == nil { // it was deleted after the switch to another namespace
		owner = site
	}
	return r.publishAs(ctx, secretName, owner, s.status.SiteKey, current)
}
