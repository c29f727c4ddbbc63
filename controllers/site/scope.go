package site

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// scope is what the phases of one reconcile share.
type scope struct {
	// site as it was read; no phase changes it.
	site *v1alpha1.Site
	// siteClaim is the claim that the Site holds, else nil.
	siteClaim *v1alpha1.SiteClaim
	// found is what the status will say.
	found findings
	// requeueAfter wakes the Site where no event would.
	requeueAfter time.Duration
}

// lookAgain wakes the Site no later than that.
func (s *scope) lookAgain(after time.Duration) {
	if s.requeueAfter == 0 || after < s.requeueAfter {
		s.requeueAfter = after
	}
}

// findings are what the phases found out. A nil verdict was not looked at, and
// leaves the condition as it was.
type findings struct {
	accepted     *verdict
	storageReady *verdict
	// schemaReady is found of Postgres storage alone.
	schemaReady *verdict
	// exposed is found only of a Site that asks for an address.
	exposed *verdict
	// url is the address of the Site, empty where it was not looked at.
	url string
	// siteKey of the data that storageReady and schemaReady speak of.
	siteKey string
	// deleting: the Site is on its way out.
	deleting bool
	// failed says what could not be done, in words that stay the same from one
	// attempt to the next; empty when all went well.
	failed string
}

// verdict is what a phase says in one condition.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// step is what follows a phase.
type step int

const (
	// proceed with the next phase.
	proceed step = iota
	// settle: run no further phase and report the status.
	settle
	// leave: run no further phase and write no status, because the Site has
	// changed or is gone. If it is still there, the change wakes the controller.
	leave
)

// phase does one part of the work and notes what it found in the scope.
type phase struct {
	name string
	run  func(context.Context, *scope) (step, error)
}

// run goes through the phases until one of them ends the reconcile.
func (s *scope) run(ctx context.Context, phases ...phase) (step, error) {
	for _, p := range phases {
		next, err := p.run(ctx, s)
		switch {
		case err != nil && ctx.Err() != nil:
			return leave, nil //nolint:nilerr // the controller is stopping; the next one begins anew
		case apierrors.IsConflict(err):
			s.requeueAfter = apply.ConflictDelay
			return leave, nil
		case err != nil:
			s.found.failed = p.name + " failed; it is tried again, and the controller's log says why"
			return settle, fmt.Errorf("%s: %w", p.name, err)
		case next != proceed:
			return next, nil
		}
	}
	return proceed, nil
}
