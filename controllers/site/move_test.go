package site

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestRetryDelay(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "oak", nil)
	unreachable := errors.New("the database cannot be reached")
	tests := []struct {
		phase v1alpha1.MovePhase
		err   error
		want  time.Duration
	}{
		{v1alpha1.MovePausing, unreachable, moveRetry},
		{v1alpha1.MoveSwitching, unreachable, moveRetry},
		{v1alpha1.MoveSwitched, unreachable, moveWait},
		{v1alpha1.MoveRollingBack, unreachable, moveWait},
		{v1alpha1.MoveRollingBack, conflict, moveRetry},
	}
	for _, test := range tests {
		if got := retryDelay(test.phase, test.err); got != test.want {
			t.Errorf("%s after %v: got %s, want %s", test.phase, test.err, got, test.want)
		}
	}
}
