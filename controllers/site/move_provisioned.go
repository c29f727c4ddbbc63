package site

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// isProvisioned reports whether a storage is a database that the controller runs.
func isProvisioned(storage *v1alpha1.Storage) bool {
	return storage.Postgres != nil && storage.Postgres.Provisioned != nil
}

// to returns the storage to which the move goes: spec.to, with the name of the database that the move
// provisions.
func (s *moveScope) to() *v1alpha1.Storage {
	to := s.move.Spec.To.DeepCopy()
	switch s.status.ProvisionedName {
	case "":
	case provision.Name:
		to.Postgres.Provisioned.Name = "" // the default
	default:
		to.Postgres.Provisioned.Name = s.status.ProvisionedName
	}
	return to
}

// targetConnection returns the connection to the database of target, which is the Site with the new
// storage. It provisions that database, or reserves it in the pool, if the storage says so. If the
// connection does not exist yet, there is false, and s.waiting or s.stalled says why, unless s.status has
// to be written first.
func (r *MoveReconciler) targetConnection(ctx context.Context, s *moveScope, target *v1alpha1.Site) (connection dsn.Connection, there bool, err error) {
	var bad *verdict
	switch postgres := target.Spec.Storage.Postgres; {
	case postgres.Provisioned != nil:
		if begun, err := r.beginProvisioning(ctx, s); err != nil || !begun {
			return dsn.Connection{}, false, err
		}
		claim := &v1alpha1.SiteClaim{Spec: v1alpha1.SiteClaimSpec{SiteKey: target.Status.SiteKey}}
		connection, bad, err = r.provisionDatabase(ctx, &scope{site: target, siteClaim: claim, moveTarget: true})
	case postgres.Pool != nil:
		connection, bad, err = r.reservedConnection(ctx, s, target) // move_pool.go
	default:
		connection, bad, err = r.connectionOf(ctx, target)
		if bad != nil && bad.reason == v1alpha1.ReasonSecretNotFound && !s.crosses() { // the SiteMove names the Secret, and its spec.to is immutable
			bad = missingSecret(target, "delete the SiteMove and create another one with another spec.to.postgres.external.secretRef")
		}
	}
	switch {
	case err != nil:
		return dsn.Connection{}, false, err
	case bad != nil && bad.reason == v1alpha1.ReasonProvisioning:
		s.waiting, s.requeueAfter = bad, moveWait
		return dsn.Connection{}, false, nil
	case bad != nil:
		s.stall(bad.reason, bad.message)
		return dsn.Connection{}, false, nil
	}
	return connection, true, nil
}

// beginProvisioning notes the name of the database that the move creates in s.status, before the database
// is created, because the move deletes only a database that it has created. begun is false if the move
// cannot create the database, which stalls the move, or if s.status has yet to be written.
func (r *MoveReconciler) beginProvisioning(ctx context.Context, s *moveScope) (begun bool, err error) {
	if s.status.ProvisionedName != "" {
		return true, nil
	}
	target := s.site.DeepCopy()
	target.Spec.Storage = *s.move.Spec.To.DeepCopy()
	name := provision.NameOf(target)
	if isProvisioned(&s.site.Spec.Storage) && provision.NameOf(s.site) == name {
		name = provision.Other(name)
	}
	target.Spec.Storage.Postgres.Provisioned.Name = name
	objects, err := viewDatabase(ctx, r.Live, r.Live, target)
	if err != nil {
		return false, err
	}
	for _, engine := range provision.Engines {
		if objects.Data(engine) != nil {
			s.stall(v1alpha1.ReasonTargetOccupied, fmt.Sprintf(
				"The namespace has a database %s of engine %s, which the move did not create. Delete the database if its data is not needed.", name, engine))
			return false, nil
		}
	}
	s.status.ProvisionedName, s.requeueAfter = name, time.Millisecond
	return false, nil
}

// abandon ends a move that has not begun to copy, and deletes the database that it has provisioned.
func (r *MoveReconciler) abandon(ctx context.Context, s *moveScope) error {
	if s.status.ProvisionedName != "" && s.siteKey() != "" {
		if deleted, err := r.deleteProvisioned(ctx, s, s.to(), s.siteKey()); err != nil || !deleted {
			return err
		}
	}
	s.status.Phase = v1alpha1.MoveRolledBack
	return nil
}

// deleteProvisioned deletes a provisioned database of the move with its data. It keeps a database that
// serves the Site by now, and then returns true. deleted is false while objects of the database exist.
func (r *MoveReconciler) deleteProvisioned(ctx context.Context, s *moveScope, storage *v1alpha1.Storage, siteKey string) (deleted bool, err error) {
	site := &v1alpha1.Site{Spec: v1alpha1.SiteSpec{Storage: *storage}}
	site.Namespace = s.move.Namespace
	if s.site != nil && isProvisioned(&s.site.Spec.Storage) && provision.NameOf(s.site) == provision.NameOf(site) {
		return true, nil
	}
	deletion := &scope{site: site}
	wait, err := r.deleteDatabase(ctx, deletion, provision.NameOf(site), siteKey)
	if err != nil || wait == 0 {
		return err == nil, err
	}
	s.waiting, s.requeueAfter = &verdict{reason: v1alpha1.ReasonMoving, message: deletion.found.failed}, wait
	return false, nil
}
