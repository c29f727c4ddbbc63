package site

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// pause locks the storage that serves the Site, so that it also refuses writes that a process sends late,
// and then begins MoveCatchingUp.
func (r *MoveReconciler) pause(ctx context.Context, s *moveScope) error {
	if r.tooLong(s) {
		r.giveUp(s, "The storage could not be locked within the maximum pause of writes.")
		return nil
	}
	if err := r.fence(ctx, s, s.status.Direction); err != nil {
		return err
	}
	if inCluster(s, s.status.Direction) {
		if left := policyDelay - r.inEffect(s); left > 0 {
			s.requeueAfter = left
			return nil
		}
	}
	s.status.Phase = v1alpha1.MoveCatchingUp
	return nil
}

// awaitCopy waits until both storages have the same data, and then begins MoveSwitching. If that fails, it
// ends the pause of writes.
func (r *MoveReconciler) awaitCopy(ctx context.Context, s *moveScope) error {
	c := s.copied()
	switch {
	case c != nil && c.Failed != "":
		r.giveUp(s, "The last changes cannot be copied: "+c.Failed+".")
	case c != nil && c.ChangesLost && s.status.Pauses < maxPauses:
		return r.compareAgain(ctx, s)
	case c != nil && c.ChangesLost:
		r.giveUp(s, fmt.Sprintf("In each of %d pauses of writes, it was not known which records had changed, or the storages had different numbers of records.", maxPauses))
	case c != nil && c.Done:
		s.status.Phase = v1alpha1.MoveSwitching
	case r.tooLong(s):
		r.giveUp(s, "The last changes were not copied within the maximum pause of writes.")
	default:
		s.requeueAfter = moveWait
	}
	return nil
}

// compareAgain ends a pause of writes and begins MoveCopying again, because all records must be compared
// again, which takes too long for a pause.
func (r *MoveReconciler) compareAgain(ctx context.Context, s *moveScope) error {
	if err := r.unfence(ctx, s, s.status.Direction); err != nil {
		return err
	}
	now := metav1.NewMicroTime(r.Now())
	s.status.Phase, s.status.ResumedTime = v1alpha1.MoveCopying, &now
	return nil
}

// tooLong reports whether writes have been paused for longer than maxPause.
func (r *MoveReconciler) tooLong(s *moveScope) bool {
	return s.status.PausedTime != nil && r.Now().Sub(s.status.PausedTime.Time) > maxPause
}

// giveUp ends a move, or a return, without a switch: the Site keeps the storage that serves it. The phase
// that follows, MoveRollingBack or, for a return, MoveSwitched, unlocks this storage.
func (r *MoveReconciler) giveUp(s *moveScope, failure string) {
	if s.status.Direction == v1alpha1.MoveBack {
		s.status.Phase, s.status.Direction, s.status.Failure = v1alpha1.MoveSwitched, v1alpha1.MoveForward, failure
		return
	}
	s.status.Phase, s.status.Failure = v1alpha1.MoveRollingBack, failure+" To try again, create another SiteMove."
}
