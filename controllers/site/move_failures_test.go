package site

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// TestFailuresAreLoggedRarely shows that a database that cannot be reached for an hour fills no log, and that the
// first failure of another phase, and the first one after a success, are logged.
func TestFailuresAreLoggedRarely(t *testing.T) {
	var written bytes.Buffer
	ctx := log.IntoContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(&written, nil)))
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	r := &MoveReconciler{Reconciler: &Reconciler{Now: func() time.Time { return now }}}
	// lines returns the number of lines that were logged since the last call.
	lines := func() int {
		defer written.Reset()
		return bytes.Count(written.Bytes(), []byte("a step of the move failed"))
	}
	port := 40000 // that of a new connection each time
	fail := func(of types.UID, phase v1alpha1.MovePhase) {
		port++
		r.noteStep(ctx, of, phase, fmt.Errorf("read tcp 10.0.0.7:%d->10.0.0.9:5432: i/o timeout", port))
	}
	fail("a", v1alpha1.MoveCopying)
	fail("b", v1alpha1.MoveCopying)
	if n := lines(); n != 2 {
		t.Errorf("%d lines of the first failures of two moves, want 2", n)
	}
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(moveWait) {
		fail("a", v1alpha1.MoveCopying)
	}
	if n := lines(); n < 10 || n > 30 {
		t.Errorf("%d lines of the failures of an hour, want 10 to 30", n)
	}
	fail("a", v1alpha1.MoveSwitching)
	if n := lines(); n != 1 {
		t.Errorf("%d lines of a failure in the next phase, want 1", n)
	}
	r.noteStep(ctx, "a", v1alpha1.MoveSwitching, nil)
	fail("a", v1alpha1.MoveSwitching)
	if n := lines(); n != 1 {
		t.Errorf("%d lines of a failure after a success, want 1", n)
	}
}
