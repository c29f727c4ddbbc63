package site

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// firstLogPause is the time after the first failure of a step of a move for which further failures in that phase
	// are not logged. The time doubles with each logged failure, up to maxLogPause.
	firstLogPause = time.Second
	maxLogPause   = 5 * time.Minute
)

// loggedFailure is the last logged failure of a move. Before next, no failure in the same phase is logged.
type loggedFailure struct {
	phase v1alpha1.MovePhase
	next  time.Time
	pause time.Duration
}

// noteStep logs the error of a step of a move, in each phase less and less often (firstLogPause), because a database
// can be unreachable for days. Texts are not compared, because they can have a port that changes. Conflicts are not
// logged.
func (r *MoveReconciler) noteStep(ctx context.Context, uid types.UID, phase v1alpha1.MovePhase, err error) {
	switch {
	case err == nil:
		r.failures.Delete(uid)
		return
	case apierrors.IsConflict(err):
		return
	}
	known, _ := r.failures.Load(uid)
	former, _ := known.(loggedFailure) // the zero value after a success
	now, pause := r.Now(), firstLogPause
	if phase == former.phase {
		if now.Before(former.next) {
			return
		}
		pause = min(2*former.pause, maxLogPause)
	}
	r.failures.Store(uid, loggedFailure{phase: phase, next: now.Add(pause), pause: pause})
	log.FromContext(ctx).Error(err, "a step of the move failed; the controller will retry", "phase", phase)
}
