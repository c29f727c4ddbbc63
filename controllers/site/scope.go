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

// scope is the state that the phases of one reconcile share.
type scope struct {
	// site is the Site as it was read, with the fields that its class completes. Only the phase that
	// reads the class changes it.
	site *v1alpha1.Site
	// class is the class of the Site, or nil.
	class *v1alpha1.SiteClass
	// siteClaim is the SiteClaim that the Site holds, or nil.
	siteClaim *v1alpha1.SiteClaim
	// moveTarget is true if site has the storage to which a SiteMove goes.
	moveTarget bool
	// found has the results of the phases for the status.
	found findings
	// requeueAfter is the delay of the next reconcile. If zero, only a watch triggers one.
	requeueAfter time.Duration
}

// lookAgain schedules a reconcile after the delay, unless an earlier one is scheduled.
func (s *scope) lookAgain(after time.Duration) {
	if s.requeueAfter == 0 || after < s.requeueAfter {
		s.requeueAfter = after
	}
}

// findings are the results of the phases. A nil verdict was not determined, so its condition does
// not change.
type findings struct {
	accepted     *verdict
	storageReady *verdict
	// schemaReady is set only with Postgres storage.
	schemaReady *verdict
	// exposed is set only with spec.exposure.
	exposed *verdict
	// issuersReady is set only with spec.access.issuers.
	issuersReady *verdict
	// url is the base URL of the site, or empty if it was not determined.
	url string
	// database is the database of the class's pool that has the records, or empty.
	database string
	// siteKey is the site key that storageReady and schemaReady apply to.
	siteKey string
	// deleting is true if the Site is being deleted.
	deleting bool
	// failed is the message if a phase failed, or empty. Repeated attempts give the same text, so that
	// the status does not change.
	failed string
}

// verdict is the status, reason and message of one condition.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// step says how a reconcile continues after a phase.
type step int

const (
	// proceed: run the next phase.
	proceed step = iota
	// finish: run no further phase and report the status.
	finish
	// leave: run no further phase and write no status, because the Site was changed or deleted. A
	// change triggers another reconcile.
	leave
)

// phase is one part of a reconcile. Its results are in the scope.
type phase struct {
	name string
	run  func(context.Context, *scope) (step, error)
}

// run runs the phases in order until one of them ends the reconcile. After a conflict, it returns leave
// without an error, and schedules the next reconcile.
func (s *scope) run(ctx context.Context, phases ...phase) (step, error) {
	for _, p := range phases {
		next, err := p.run(ctx, s)
		switch {
		case err != nil && ctx.Err() != nil:
			return leave, nil //nolint:nilerr // the controller is stopping; its successor starts over
		case apierrors.IsConflict(err):
			s.requeueAfter = apply.ConflictDelay
			return leave, nil
		case err != nil:
			s.found.failed = "An error occurred while " + p.name + ". The controller retries. See the error in its log."
			return finish, fmt.Errorf("%s: %w", p.name, err)
		case next != proceed:
			return next, nil
		}
	}
	return proceed, nil
}
