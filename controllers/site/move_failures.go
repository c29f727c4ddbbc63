package site

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// firstLogPause is the time after the first failure of a step of a move for which the same error is not logged again.
// The time doubles each time that it is logged, up to maxLogPause.
const (
	firstLogPause = time.Second
	maxLogPause   = 5 * time.Minute
)

// loggedFailure is the last logged failure of a move. Before next, the same text is not logged again.
type loggedFailure struct {
	text  string
	next  time.Time
	pause time.Duration
}

// noteStep logs the error of a step of a move. It logs the same error less and less often (firstLogPause), because a
// database can be unreachable for days. Conflicts are not logged.
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
	if err.Error() == former.text {
		if now.Before(former.next) {
			return
		}
		pause = min(2*former.pause, maxLogPause)
	}
	r.failures.Store(uid, loggedFailure{text: err.Error(), next: now.Add(pause), pause: pause})
	log.FromContext(ctx).Error(err, "a step of the move failed; the controller will retry", "phase", phase)
}
