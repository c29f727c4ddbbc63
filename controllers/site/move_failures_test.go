package site

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// TestFailuresAreLoggedRarely shows that a database that cannot be reached for an hour fills no log, and that another
// error, and the first one after a success, are logged.
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
	fail := func(of types.UID, text string) { r.noteStep(ctx, of, v1alpha1.MoveCopying, errors.New(text)) }
	fail("a", "unreachable")
	fail("b", "unreachable")
	if n := lines(); n != 2 {
		t.Errorf("%d lines of the first failures of two moves, want 2", n)
	}
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(moveWait) {
		fail("a", "unreachable")
	}
	if n := lines(); n < 10 || n > 30 {
		t.Errorf("%d lines of the failures of an hour, want 10 to 30", n)
	}
	fail("a", "of a later release")
	if n := lines(); n != 1 {
		t.Errorf("%d lines of another failure, want 1", n)
	}
	r.noteStep(ctx, "a", v1alpha1.MoveCopying, nil)
	fail("a", "of a later release")
	if n := lines(); n != 1 {
		t.Errorf("%d lines of a failure after a success, want 1", n)
	}
}
