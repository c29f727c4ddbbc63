package site

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/controllers/apply"
)

const (
	// moveRetry is the delay before the next reconcile of a move after a conflict, after an error while writes
	// are paused, and during a switch.
	moveRetry = 300 * time.Millisecond
	// moveWait is the delay before the next reconcile of a move that is stalled, waits for a database to be
	// created or for the last changes to be copied, or had an error while writes were not paused.
	moveWait = 5 * time.Second
	// maxPause is the maximum time from the beginning of a pause of writes until the other storage is
	// ready. Beyond it, the pause ends without a switch (giveUp). If the switch had begun, the API servers
	// first use the storage of before again. The time for this is not limited.
	maxPause = time.Minute
	// maxPauses is the maximum number of pauses of writes in one direction. If all records would have to be
	// compared again after the last pause, the switch is given up (giveUp).
	maxPauses = 3
	// policyDelay is the time in which kube-apiserver is expected to apply the ValidatingAdmissionPolicy
	// paddock-moved-records to a namespace after FencedLabel was set.
	policyDelay = time.Second
	// settleDelay is the time in which all API servers are expected to use another storage after it was
	// published.
	settleDelay = time.Second
	// attemptEnd is the time in which the result of an attempt of a delivery is expected to be stored after
	// the timeout of its webhook. quietDrain is the duration of MoveDraining without webhooks.
	attemptEnd = 5 * time.Second
	quietDrain = time.Second
	// eraseDelay is the time in which the API servers are expected to stop copying for a move that is
	// rolled back.
	eraseDelay = 2 * time.Second
	// returnRetry is the delay before a return to the former storage is tried again after a failure.
	returnRetry = 5 * time.Minute
)

// MoveReconciler reconciles SiteMoves. It decides each step; the API servers copy the data.
type MoveReconciler struct {
	*Reconciler

	// effects has the effect of each move, by its UID, see inEffect.
	effects sync.Map
	// failures has the loggedFailure of each move whose last step failed, by its UID, see noteStep.
	failures sync.Map
}

// +kubebuilder:rbac:groups=paddock.health,resources=sitemoves,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=paddock.health,resources=sitemoves/status,verbs=patch

// SetupWithManager registers the controller.
func (r *MoveReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("sitemove").
		For(&v1alpha1.SiteMove{}).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(moveOfSite)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentReconciles, UsePriorityQueue: ptr.To(false)}). // see watches.go
		Complete(r)
}

// moveOfSite returns the SiteMove that a Site names.
func moveOfSite(_ context.Context, obj client.Object) []reconcile.Request {
	site, ok := obj.(*v1alpha1.Site)
	if !ok || site.Status.Move == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: site.Status.Move.NamespaceOr(site.Namespace), Name: site.Status.Move.Name,
	}}}
}

// moveScope is the state of one reconcile of a SiteMove.
type moveScope struct {
	move *v1alpha1.SiteMove
	// site is the Site of spec.siteName, or nil if it does not exist.
	site *v1alpha1.Site
	// target is the Site of spec.toSite. It is nil without spec.toSite, or if the Site does not exist.
	target *v1alpha1.Site
	// status is the status to write, without copy, which the API servers write.
	status v1alpha1.SiteMoveStatus
	// waiting is what the move waits for, or nil.
	waiting *verdict
	// stalled is why the move cannot continue until a person acts, or nil.
	stalled *verdict
	// requeueAfter is the delay of the next reconcile. If zero, only a watch triggers one.
	requeueAfter time.Duration
}

// Reconcile takes the next step of one SiteMove. The SiteMove, its Sites, its SiteClaim and the
// connections of the move are read from kube-apiserver, because a stale phase could undo a step. The
// published connections and the Webhooks are read from the cache.
func (r *MoveReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	move, err := find[v1alpha1.SiteMove](ctx, r.Live, req.NamespacedName)
	if err != nil || move == nil {
		return ctrl.Result{}, err
	}
	s := &moveScope{move: move, status: *move.Status.DeepCopy()}
	s.status.Copy = nil
	if s.status.Phase == "" {
		s.status.Phase, s.status.Direction = v1alpha1.MovePending, v1alpha1.MoveForward
	}
	if s.site, err = find[v1alpha1.Site](ctx, r.Live, client.ObjectKey{Namespace: req.Namespace, Name: move.Spec.SiteName}); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.findTarget(ctx, s); err != nil { // move_namespace.go
		return ctrl.Result{}, err
	}
	if s.status.Phase.Ended() {
		if err := r.endMove(ctx, s); !apierrors.IsConflict(err) {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: moveRetry}, nil
	}
	phase, direction := s.status.Phase, s.status.Direction
	if err = r.mirror(ctx, s); err == nil {
		err = r.renewConnections(ctx, s) // move_connections.go
	}
	if err == nil {
		err = r.step(ctx, s)
	}
	r.noteStep(ctx, s.move.UID, phase, err) // move_failures.go
	if err != nil {
		s.requeueAfter = retryDelay(phase, err)
	}
	if s.status.Phase != phase || s.status.Direction != direction {
		now := metav1.NewMicroTime(r.Now())
		s.status.PhaseTime = &now
		s.requeueAfter = time.Millisecond
	}
	if err := r.writeMove(ctx, s); err != nil && !apierrors.IsNotFound(err) {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: moveRetry}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.requeueAfter}, nil
}

// retryDelay returns the delay after an error. A pause of writes must not grow by the delays of the work
// queue. In the other phases the delay is longer, because a database can be unreachable for days.
func retryDelay(phase v1alpha1.MovePhase, err error) time.Duration {
	if phase.PausesWrites() || apierrors.IsConflict(err) {
		return moveRetry
	}
	return moveWait
}

// claimOf returns the SiteClaim with the site key of the move, or nil. It also finds the SiteClaim after
// the Sites of the move were deleted.
func (r *MoveReconciler) claimOf(ctx context.Context, s *moveScope) (*v1alpha1.SiteClaim, error) {
	key := s.siteKey()
	namespaces := []string{s.move.Namespace}
	if s.crosses() {
		namespaces = append(namespaces, s.move.Spec.ToSite.Namespace)
	}
	for _, namespace := range namespaces {
		claims := &v1alpha1.SiteClaimList{}
		if err := r.Live.List(ctx, claims, client.MatchingFields{siteClaimNamespaceField: namespace}); err != nil {
			return nil, fmt.Errorf("list the SiteClaims of namespace %s: %w", namespace, err)
		}
		for i := range claims.Items {
			if claims.Items[i].Spec.SiteKey == key {
				return &claims.Items[i], nil
			}
		}
	}
	return nil, nil
}

// step takes the next step of the phase. It changes the phase in s.status when the phase is done.
func (r *MoveReconciler) step(ctx context.Context, s *moveScope) error {
	if s.crosses() && s.status.Phase != v1alpha1.MovePending {
		if done, err := r.stepWithoutSite(ctx, s); done || err != nil {
			return err
		}
	} else if s.status.Phase != v1alpha1.MovePending {
		if done, err := r.stepDeleted(ctx, s); done || err != nil { // move_deleted.go
			return err
		}
	}
	forward := s.status.Direction != v1alpha1.MoveBack
	givenUp := s.move.Spec.Decision == v1alpha1.MoveRollBack || !s.move.DeletionTimestamp.IsZero()
	switch s.status.Phase {
	case v1alpha1.MovePending:
		if givenUp {
			return r.abandon(ctx, s)
		}
		return r.beginMove(ctx, s)
	case v1alpha1.MoveCopying, v1alpha1.MoveDraining:
		if forward && givenUp {
			s.status.Phase = v1alpha1.MoveRollingBack
			return nil
		}
		if s.status.Phase == v1alpha1.MoveDraining {
			return r.drain(ctx, s)
		}
		return r.copyWhileServing(ctx, s)
	case v1alpha1.MovePausing:
		return r.pause(ctx, s)
	case v1alpha1.MoveCatchingUp:
		return r.awaitCopy(ctx, s)
	case v1alpha1.MoveSwitching:
		return r.switchStorage(ctx, s)
	case v1alpha1.MoveSwitched:
		return r.awaitDecision(ctx, s)
	case v1alpha1.MoveRollingBack:
		return r.rollBack(ctx, s)
	}
	return nil
}

// siteKey returns the site key of the move. The status does not have it before the move has begun to prepare.
func (s *moveScope) siteKey() string {
	if s.status.SiteKey == "" && s.site != nil {
		return s.site.Status.SiteKey
	}
	return s.status.SiteKey
}

// copied returns the report of the API servers about the current phase, or nil.
func (s *moveScope) copied() *v1alpha1.MoveCopy {
	if c := s.move.Status.Copy; c != nil && c.Phase == s.status.Phase && c.Direction == s.status.Direction {
		return c
	}
	return nil
}

// since returns the time since the phase began.
func (r *MoveReconciler) since(s *moveScope) time.Duration {
	if s.status.PhaseTime == nil {
		return 0
	}
	return r.Now().Sub(s.status.PhaseTime.Time)
}

// stall reports why the move cannot continue, which is checked again after moveWait.
func (s *moveScope) stall(reason, message string) {
	s.stalled = &verdict{metav1.ConditionFalse, reason, message}
	s.requeueAfter = moveWait
}

// stalledByPause stalls the move if the Site has PausedAnnotation, and reports whether it did. The new
// storage of such a Site would not be published, and writes would be refused until the annotation is
// removed.
func (s *moveScope) stalledByPause(site *v1alpha1.Site) bool {
	if _, paused := site.Annotations[v1alpha1.PausedAnnotation]; !paused {
		return false
	}
	s.stall(v1alpha1.ReasonSiteNotReady, fmt.Sprintf("Site %q is paused. Remove its annotation %s.", site.Name, v1alpha1.PausedAnnotation))
	return true
}

// beginMove checks that the move is possible, prepares the new database, and publishes the connections of
// the move to the API servers. It takes several reconciles, and then begins MoveCopying.
func (r *MoveReconciler) beginMove(ctx context.Context, s *moveScope) error {
	site := s.site
	switch {
	case site == nil || !site.DeletionTimestamp.IsZero() || site.Status.SiteKey == "" || !storageChecked(site, site.Status.SiteKey):
		s.stall(v1alpha1.ReasonSiteNotReady, fmt.Sprintf("Site %q does not exist in this namespace or is not ready. Correct spec.siteName, or wait until the Site is ready.", s.move.Spec.SiteName))
		return nil
	case s.stalledByPause(site):
		return nil
	case site.Status.Move != nil && site.Status.Move.UID != string(s.move.UID):
		s.stall(v1alpha1.ReasonMoveInProgress, fmt.Sprintf("SiteMove %q of the Site has not ended. Set its spec.decision first.", site.Status.Move.Name))
		return nil
	}
	if !controllerutil.ContainsFinalizer(s.move, v1alpha1.SiteMoveFinalizer) {
		return r.setMoveFinalizer(ctx, s, true)
	}
	if err := r.occupy(ctx, s); err != nil { // move_status.go
		return err
	}
	if s.status.SiteKey != site.Status.SiteKey { // the status has the key before the move creates or reserves something, see abandon
		s.status.SiteKey, s.requeueAfter = site.Status.SiteKey, time.Millisecond
		return nil
	}
	target := s.target
	if s.crosses() {
		if ready, err := r.targetReady(ctx, s); err != nil || !ready {
			return err
		}
	} else {
		target = site.DeepCopy()
		target.Spec.Storage = *s.to()
	}
	connection, there, err := r.targetConnection(ctx, s, target)
	if err != nil || !there {
		return err
	}
	conn, bad := r.connect(ctx, connection)
	if bad != nil {
		s.stall(bad.reason, bad.message)
		return nil
	}
	defer closeConnection(ctx, conn)
	working, cancel := context.WithTimeout(ctx, r.DatabaseTimeout)
	defer cancel()
	switch _, err := schema.Migrate(working, conn); {
	case errors.Is(err, schema.ErrNewer):
		s.stall(newerSchema.reason, newerSchema.message)
		return nil
	case err != nil:
		s.stall(v1alpha1.ReasonMigrationFailed, "The tables of the new database cannot be created or migrated. See the error in the controller's log.")
		return err
	}
	switch there, err := schema.HasSite(working, conn, site.Status.SiteKey); {
	case err != nil:
		return err
	case there:
		s.stall(v1alpha1.ReasonTargetOccupied, "The new database has data of this site: it is the current database, or has data left by an earlier move. Use another database.")
		return nil
	}
	if site.Spec.Storage.Type == v1alpha1.StoragePostgres {
		former, there, err := r.publishedConnection(ctx, site.Namespace, site.Status.SiteKey)
		switch {
		case err != nil:
			return fmt.Errorf("read the connection of Site %s/%s: %w", site.Namespace, site.Name, err)
		case !there:
			return fmt.Errorf("the connection Secret of Site %s/%s is not published yet", site.Namespace, site.Name)
		}
		if err := r.publishAs(ctx, v1alpha1.MoveFromName(site.Namespace), site, site.Status.SiteKey, former); err != nil {
			return err
		}
	}
	if err := r.publishAs(ctx, v1alpha1.MoveToName(site.Namespace), site, site.Status.SiteKey, connection); err != nil {
		return err
	}
	if s.target != nil {
		s.status.ToSiteUID = s.target.UID
	}
	s.status.From = site.Spec.Storage.DeepCopy()
	s.status.Phase = v1alpha1.MoveCopying
	r.event(site, "MoveStarted", fmt.Sprintf("SiteMove %q copies the data of the Site.", s.move.Name))
	return nil
}

// copyWhileServing waits until the API servers have copied the data, and then begins MoveDraining. For a
// return, it first unlocks the former storage, to which they copy.
func (r *MoveReconciler) copyWhileServing(ctx context.Context, s *moveScope) error {
	if s.status.Direction == v1alpha1.MoveBack {
		if err := r.unfence(ctx, s, v1alpha1.MoveForward); err != nil {
			return err
		}
	}
	switch c := s.copied(); {
	case c != nil && c.Failed != "":
		advice := "Remove the cause, or set spec.decision to RollBack."
		if s.status.Direction == v1alpha1.MoveBack {
			advice = "Remove the cause." // the decision is RollBack
		}
		s.stall(v1alpha1.ReasonCopyFailed, "The data cannot be copied: "+c.Failed+". "+advice)
		return nil
	case c != nil && c.Done:
		if there, err := r.webhooksThere(ctx, s); err != nil || !there {
			return err
		}
		s.status.Phase = v1alpha1.MoveDraining
		return nil
	}
	return r.awaitReport(ctx, s)
}

// drain waits as long as the attempts of deliveries in progress can take, and then begins the pause of
// writes.
func (r *MoveReconciler) drain(ctx context.Context, s *moveScope) error {
	hooks := &v1alpha1.WebhookList{}
	if err := r.Client.List(ctx, hooks, client.InNamespace(s.serving().Namespace)); err != nil {
		return fmt.Errorf("list the Webhooks of namespace %s: %w", s.serving().Namespace, err)
	}
	duration := quietDrain
	for i := range hooks.Items {
		duration = max(duration, timeoutOf(&hooks.Items[i])+attemptEnd)
	}
	if left := duration - r.inEffect(s); left > 0 {
		s.requeueAfter = left
		return nil
	}
	if s.stalledByPause(s.serving()) {
		return nil
	}
	now := metav1.NewMicroTime(r.Now())
	s.status.Phase, s.status.PausedTime, s.status.ResumedTime = v1alpha1.MovePausing, &now, nil
	s.status.Pauses++
	return nil
}

// endMove removes what a move that has ended leaves: the reservation in the SiteClaim, status.move of the
// Sites, the Secrets with its connections, and its finalizer.
func (r *MoveReconciler) endMove(ctx context.Context, s *moveScope) error {
	r.effects.Delete(s.move.UID)
	r.failures.Delete(s.move.UID)
	if controllerutil.ContainsFinalizer(s.move, v1alpha1.SiteMoveFinalizer) {
		if err := r.releaseReserved(ctx, s); err != nil { // before another move can begin
			return err
		}
	}
	for _, site := range []*v1alpha1.Site{s.site, s.target} {
		if site != nil && site.Status.Move != nil && site.Status.Move.UID == string(s.move.UID) {
			if err := r.applyMove(ctx, site, nil); err != nil {
				return err
			}
		}
	}
	if !controllerutil.ContainsFinalizer(s.move, v1alpha1.SiteMoveFinalizer) {
		return nil
	}
	if s.site == nil {
		if err := r.labelFenced(ctx, s.move.Namespace, false); err != nil {
			return err
		}
	}
	for _, name := range []string{v1alpha1.MoveToName(s.move.Namespace), v1alpha1.MoveFromName(s.move.Namespace)} {
		secret, err := find[corev1.Secret](ctx, r.Live, client.ObjectKey{Namespace: r.ConnectionsNamespace, Name: name})
		if err != nil {
			return err
		}
		if secret != nil {
			if err := r.deleteAsRead(ctx, secret); err != nil {
				return err
			}
		}
	}
	return r.setMoveFinalizer(ctx, s, false)
}

func (r *MoveReconciler) setMoveFinalizer(ctx context.Context, s *moveScope, want bool) error {
	if want {
		s.requeueAfter = time.Millisecond
	}
	version, err := apply.Finalizer(ctx, r.Client, s.move, v1alpha1.SiteMoveFinalizer, want)
	if err == nil {
		s.move.ResourceVersion = version
	}
	return err
}
