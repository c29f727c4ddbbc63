package site

import (
	"time"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// effect says since when this process has seen a phase of a move in effect.
type effect struct {
	phase     v1alpha1.MovePhase
	direction v1alpha1.MoveDirection
	// began is PhaseTime of the status. It distinguishes repetitions of a phase.
	began time.Time
	since time.Time
}

// inEffect returns the time since this process first called it in the phase. The caller has seen that the
// phase is in effect: status.move of the Sites has it, and the storage is locked if it must be. PhaseTime
// can be much earlier, if a leader died after it had written the phase.
func (r *MoveReconciler) inEffect(s *moveScope) time.Duration {
	now := r.Now()
	seen := effect{phase: s.status.Phase, direction: s.status.Direction, since: now}
	if s.status.PhaseTime != nil {
		seen.began = s.status.PhaseTime.Time
	}
	known, _ := r.effects.Load(s.move.UID)
	former, ok := known.(effect)
	if ok && former.phase == seen.phase && former.direction == seen.direction && former.began.Equal(seen.began) {
		return now.Sub(former.since)
	}
	r.effects.Store(s.move.UID, seen)
	return 0
}
