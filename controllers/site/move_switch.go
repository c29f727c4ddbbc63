package site

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/controllers/apply"
)

// switchStorage makes the API servers use the other storage of the Site. If that storage is not ready
// within the maximum pause of writes, switchStorage makes them use the storage of before again. No API
// server writes meanwhile.
func (r *MoveReconciler) switchStorage(ctx context.Context, s *moveScope) error {
	if s.crosses() {
		return r.switchSite(ctx, s) // move_namespace.go
	}
	s.requeueAfter = moveRetry
	back := s.status.Direction == v1alpha1.MoveBack
	if s.status.Failure != "" {
		if ready, err := r.useStorage(ctx, s, !back); err != nil || !ready {
			return err
		}
		r.giveUp(s, s.status.Failure)
		return nil
	}
	ready, err := r.useStorage(ctx, s, back)
	if !ready && r.tooLong(s) {
		s.status.Failure = "The other storage did not become ready within the maximum pause of writes."
		return nil
	}
	if err != nil || !ready {
		return err
	}
	if r.settle(s) {
		r.event(s.site, "Switched", fmt.Sprintf("SiteMove %q has switched the Site to storage.type %s.", s.move.Name, s.site.Spec.Storage.Type))
	}
	return nil
}

// useStorage changes spec.storage of the Site to the new storage, or back to the former one. ready
// reports whether that storage is ready and published to the API servers.
func (r *MoveReconciler) useStorage(ctx context.Context, s *moveScope, former bool) (ready bool, err error) {
	storage := s.to()
	if former {
		storage = s.status.From
	}
	if err := r.switchPlacement(ctx, s, former); err != nil { // before spec.storage, by which the controller would place the Site
		return false, err
	}
	if sameStorage(&s.site.Spec.Storage, storage) {
		return r.isSwitched(ctx, s, storage, former)
	}
	changed := s.site.DeepCopy()
	changed.Spec.Storage = *storage.DeepCopy()
	patch := client.MergeFromWithOptions(s.site, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, apply.FieldOwner); err != nil {
		return false, fmt.Errorf("change spec.storage of Site %s/%s: %w", changed.Namespace, changed.Name, err)
	}
	return false, nil
}

// settle ends the phase settleDelay after the other storage was published. By then, all API servers are
// expected to use it. settle reports whether it ended the phase.
func (r *MoveReconciler) settle(s *moveScope) bool {
	now := metav1.NewMicroTime(r.Now())
	if s.status.ResumedTime == nil {
		s.status.ResumedTime = &now // when the storage was published; replaced below
	}
	if left := settleDelay - now.Sub(s.status.ResumedTime.Time); left > 0 {
		s.requeueAfter = left
		return false
	}
	s.status.ResumedTime = &now
	if s.status.Direction == v1alpha1.MoveBack {
		s.status.Phase = v1alpha1.MoveRollingBack
	} else {
		s.status.Phase = v1alpha1.MoveSwitched
	}
	return true
}

// isSwitched reports whether the current storage of the Site is ready and published to the API servers.
// former is true if storage is the one that the Site had before the move.
func (r *MoveReconciler) isSwitched(ctx context.Context, s *moveScope, storage *v1alpha1.Storage, former bool) (bool, error) {
	site := s.site
	if site.Status.ObservedGeneration != site.Generation || !storageChecked(site, s.status.SiteKey) {
		return false, nil
	}
	if storage.Type != v1alpha1.StoragePostgres {
		return true, nil
	}
	if !isTrue(site, v1alpha1.ConditionSchemaReady) {
		return false, nil
	}
	published, there, err := r.publishedConnection(ctx, site.Namespace, s.status.SiteKey)
	if err != nil || !there {
		return false, err
	}
	name := v1alpha1.MoveToName(site.Namespace)
	if former {
		name = v1alpha1.MoveFromName(site.Namespace)
	}
	wanted, there, err := r.namedConnection(ctx, name, s.status.SiteKey)
	// Password and certificates may have been renewed since the move began.
	return there && wanted.SameDatabase(published), err
}

// awaitDecision keeps the former storage, locked, until spec.decision is set. With Confirm, it deletes the
// data in the former storage and completes the move. With RollBack, it begins the return. After a return
// that failed, it first unlocks the new storage and locks the former one.
func (r *MoveReconciler) awaitDecision(ctx context.Context, s *moveScope) error {
	if s.status.Failure != "" { // a return failed, after which the new storage may be locked
		if err := r.unfence(ctx, s, v1alpha1.MoveBack); err != nil {
			return err
		}
		if err := r.fence(ctx, s, v1alpha1.MoveForward); err != nil {
			return err
		}
	}
	s.requeueAfter = dataCheck
	if same, err := r.checkDataID(ctx, s); err != nil || !same {
		return err
	}
	switch s.move.Spec.Decision {
	case v1alpha1.MoveConfirm:
		if c := s.copied(); c == nil || !c.Done {
			return r.awaitReport(ctx, s) // the audit log is still being copied
		}
		wait, err := r.eraseFormer(ctx, s)
		if err != nil || wait > 0 {
			s.requeueAfter = wait
			return err
		}
		s.status.Phase = v1alpha1.MoveCompleted
		r.event(s.serving(), "MoveCompleted", fmt.Sprintf("SiteMove %q was confirmed, and the data in the former storage was deleted.", s.move.Name))
	case v1alpha1.MoveRollBack:
		if s.status.Failure != "" && r.since(s) < returnRetry {
			s.stall(v1alpha1.ReasonCopyFailed, s.status.Failure+" The Site is served from the new storage. The rollback is retried.")
			s.requeueAfter = returnRetry - r.since(s)
			return nil
		}
		s.status.Phase, s.status.Direction, s.status.Failure = v1alpha1.MoveCopying, v1alpha1.MoveBack, ""
		s.status.Pauses = 0
	}
	return nil
}

// dataCheck is the time between two checks of the new database while a move waits for its decision.
const dataCheck = time.Minute

// checkDataID reports whether the new database still has the data that was moved to it. If not, it stalls the
// move, because the former storage may have the only copy. After the switch, it sets status.dataID.
func (r *MoveReconciler) checkDataID(ctx context.Context, s *moveScope) (same bool, err error) {
	var id string
	err = r.withDatabase(ctx, s, v1alpha1.MoveToName(s.move.Namespace), func(ctx context.Context, conn *pgx.Conn) (err error) {
		id, err = schema.DataID(ctx, conn, s.status.SiteKey)
		return err
	})
	switch {
	case err != nil:
		return false, err
	case s.status.DataID == "" && id != "":
		s.status.DataID = id
	case s.status.DataID != id || id == "": // after the switch, the database of a site has a row of it
		s.stall(v1alpha1.ReasonForeignRecords, "The new database does not have the data that was moved to it: it is empty, or was created again. "+
			"Restore the database from a backup that was made after the switch. The data in the former storage is kept.")
		return false, nil
	}
	return true, nil
}

// rollBack unlocks the former storage, which serves the Site, and deletes the copy in the new database.
// After a return, it first waits until the logs written since the switch are copied back.
func (r *MoveReconciler) rollBack(ctx context.Context, s *moveScope) error {
	if err := r.unfence(ctx, s, v1alpha1.MoveForward); err != nil {
		return err
	}
	if s.status.PausedTime != nil && s.status.ResumedTime == nil {
		now := metav1.NewMicroTime(r.Now())
		s.status.ResumedTime = &now
	}
	if left := eraseDelay - r.inEffect(s); left > 0 {
		s.requeueAfter = left
		return nil
	}
	if c := s.copied(); s.status.Direction == v1alpha1.MoveBack && (c == nil || !c.Done) {
		s.waiting = &verdict{reason: v1alpha1.ReasonMoving, message: "The audit log and the log of deliveries since the switch are being copied back. The Site serves reads and writes."}
		return r.awaitReport(ctx, s)
	}
	if err := r.dropChanges(ctx, s); err != nil {
		return err
	}
	if isProvisioned(&s.move.Spec.To) {
		if deleted, err := r.deleteProvisioned(ctx, s, s.to(), s.status.SiteKey); err != nil || !deleted {
			return err
		}
		r.rolledBack(s)
		return nil
	}
	err := r.withDatabase(ctx, s, v1alpha1.MoveToName(s.move.Namespace), func(ctx context.Context, conn *pgx.Conn) error {
		if err := schema.Unfence(ctx, conn, s.status.SiteKey); err != nil {
			return err
		}
		return schema.Erase(ctx, conn, s.status.SiteKey)
	})
	if err != nil {
		return err
	}
	r.rolledBack(s)
	return nil
}

func (r *MoveReconciler) rolledBack(s *moveScope) {
	s.status.Phase = v1alpha1.MoveRolledBack
	if s.site == nil {
		return
	}
	r.event(s.site, "MoveRolledBack", fmt.Sprintf("SiteMove %q was rolled back.", s.move.Name))
}
