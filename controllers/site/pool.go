package site

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/apply"
)

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get

// roomDelay is the delay before the placement of a Site without room is tried again. Normally the
// status of the SiteClass triggers a reconcile earlier, but it does not show room that was taken and
// became free again between two updates.
const roomDelay = time.Minute

// notPlaced is the verdict for a Site that has no database of a pool.
var notPlaced = verdict{metav1.ConditionFalse, v1alpha1.ReasonNoCapacity, "The Site has not been placed on a database of the pool of its SiteClass."}

// place returns the connection to the database of the pool that has the Site's records. If the Site
// has no database yet, place chooses one and writes the placement to the SiteClaim, which outlives
// the Site. If the verdict is not nil, it says why there is no connection.
func (r *Reconciler) place(ctx context.Context, s *scope) (dsn.Connection, *verdict, error) {
	if s.siteClaim.Spec.Placement == nil {
		if bad, err := r.choose(ctx, s); bad != nil || err != nil {
			s.lookAgain(roomDelay)
			return dsn.Connection{}, bad, err
		}
	}
	s.found.database = s.siteClaim.Spec.Placement.Database
	connection, bad, err := r.placedConnection(ctx, s.siteClaim.Spec.Placement)
	if bad != nil {
		s.lookAgain(databaseDelay) // changes of the pool's Secrets do not trigger a reconcile
	}
	return connection, bad, err
}

// choose writes a placement to the SiteClaim. If the verdict is not nil, it says why no database has room.
func (r *Reconciler) choose(ctx context.Context, s *scope) (*verdict, error) {
	r.placements.Lock()
	defer r.placements.Unlock()
	placement, bad, err := r.findRoom(ctx, s.class, s.site.Spec.Storage.Postgres.Pool.Region, nil)
	if bad != nil || err != nil {
		return bad, err
	}
	claim := s.siteClaim.DeepCopy()
	claim.Spec.Placement = placement
	if err := r.writePlacement(ctx, claim); err != nil {
		return nil, err
	}
	s.siteClaim = claim
	r.event(s.site, "Placed", fmt.Sprintf("Placed the site on database %q of SiteClass %q.", placement.Database, placement.ClassName))
	return nil, nil
}

// findRoom returns the placement on a database of the class's pool with room for another Site. current is
// the placement that the Site leaves, or nil. If the verdict is not nil, it says why no database has room.
// The caller keeps placements locked until it has written the placement.
func (r *Reconciler) findRoom(ctx context.Context, class *v1alpha1.SiteClass, region string, current *v1alpha1.Placement) (*v1alpha1.Placement, *verdict, error) {
	if class == nil || class.Pool() == nil {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonNoCapacity, "storage.postgres.pool needs a SiteClass with a pool. Set spec.className of the Site to the name of such a SiteClass."}, nil
	}
	claims, err := r.placedClaims(ctx) // placements.go
	if err != nil {
		return nil, nil, err
	}
	database := class.RoomFor(region, current, claims)
	if database == nil {
		return nil, noRoom(class, region), nil
	}
	return &v1alpha1.Placement{ClassName: class.Name, Database: database.Name}, nil, nil
}

// updateClaim writes a SiteClaim. If it has changed since it was read, updateClaim returns a conflict.
func (r *Reconciler) updateClaim(ctx context.Context, claim *v1alpha1.SiteClaim) error {
	if err := r.Client.Update(ctx, claim, apply.FieldOwner); err != nil {
		return fmt.Errorf("update SiteClaim %s: %w", claim.Name, err)
	}
	return nil
}

// releasePlacement removes the placement of a Site that a SiteMove has moved out of its pool, after the
// move has ended, because the Site can return to the pool until then. It keeps the placement while the
// status of the Site does not have the site key: such a Site may have been created again during the move,
// see storedElsewhere.
func (r *Reconciler) releasePlacement(ctx context.Context, s *scope) error {
	if s.siteClaim == nil || s.siteClaim.Spec.Placement == nil || s.site.Status.Move != nil ||
		s.site.Status.SiteKey != s.siteClaim.Spec.SiteKey || isPooled(&s.site.Spec.Storage) {
		return nil
	}
	s.siteClaim.Spec.Placement = nil
	return r.updateClaim(ctx, s.siteClaim)
}

// isPooled reports whether a storage is a database of a pool.
func isPooled(storage *v1alpha1.Storage) bool {
	return storage.Postgres != nil && storage.Postgres.Pool != nil
}

// placedConnection reads the connection to a database of a pool from its Secret in the operator's
// namespace.
func (r *Reconciler) placedConnection(ctx context.Context, placement *v1alpha1.Placement) (dsn.Connection, *verdict, error) {
	class, err := find[v1alpha1.SiteClass](ctx, r.Client, client.ObjectKey{Name: placement.ClassName})
	if err != nil {
		return dsn.Connection{}, nil, err
	}
	var database *v1alpha1.PoolDatabase
	if class != nil {
		database = class.Database(placement.Database)
	}
	if database == nil {
		return dsn.Connection{}, &verdict{metav1.ConditionFalse, v1alpha1.ReasonNotInPool, fmt.Sprintf(
			"The site's records are in database %q, which is no longer in the pool of SiteClass %q. Ask a cluster administrator to add the database to the pool again.",
			placement.Database, placement.ClassName)}, nil
	}
	if number, ok := v1alpha1.TemplateNumber(database.Name); ok && database.SecretRef.Name == "" {
		return r.templateConnection(ctx, class, number)
	}
	secret, err := find[corev1.Secret](ctx, r.Live, client.ObjectKey{Namespace: r.Namespace, Name: database.SecretRef.Name})
	if err != nil {
		return dsn.Connection{}, nil, err
	}
	if secret == nil || secret.Type != v1alpha1.SecretTypeDSN {
		return dsn.Connection{}, &verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, fmt.Sprintf(
			"The connection of database %q of SiteClass %q is missing. Ask a cluster administrator to create its Secret.", placement.Database, placement.ClassName)}, nil
	}
	connection, bad, err := parseConnection(secret, database.SecretRef.Key)
	if bad != nil {
		bad.message = fmt.Sprintf("The connection of database %q of SiteClass %q is invalid. Ask a cluster administrator to correct its Secret.", placement.Database, placement.ClassName)
	}
	return connection, bad, err
}
