package siteclass

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

const (
	// maxDrains is the maximum number of Sites of a class that are moved concurrently, so that the Sites that
	// share a database with them are served as usual.
	maxDrains = 2
	// drainRetry is the delay before a Site whose move was rolled back is moved again.
	drainRetry = 5 * time.Minute
	// drainInterval is the interval between checks of a database that is being drained.
	drainInterval = 30 * time.Second
)

// +kubebuilder:rbac:groups=paddock.health,resources=sitemoves,verbs=get;list;watch;create;delete

// drain creates SiteMoves for the Sites of databases that are drained. It deletes its SiteMoves that have
// ended, and those that are no longer needed and have not begun. It returns messages by database, which say
// why Sites of that database cannot be moved.
func (r *Reconciler) drain(ctx context.Context, reader client.Reader, class *v1alpha1.SiteClass, sites []v1alpha1.Site, claims []v1alpha1.SiteClaim) (map[string]string, error) {
	moves := &v1alpha1.SiteMoveList{}
	if err := reader.List(ctx, moves, client.MatchingLabels{v1alpha1.DrainLabel: class.Name}); err != nil {
		return nil, fmt.Errorf("list the SiteMoves of the drain: %w", err)
	}
	d := drain{class: class, claims: claims, sites: map[types.UID]*v1alpha1.Site{}, moves: map[types.NamespacedName]*v1alpha1.SiteMove{}, blocked: map[string]int{}, refused: map[string]int{}}
	for i := range sites {
		d.sites[sites[i].UID] = &sites[i]
	}
	for i := range moves.Items {
		move := &moves.Items[i]
		d.moves[client.ObjectKeyFromObject(move)] = move
		switch {
		case stuck(move): // other Sites are moved before a new SiteMove of this Site
			if err := r.deleteMove(ctx, move); err != nil {
				return nil, err
			}
		case !move.Status.Phase.Ended():
			d.moving++
		}
	}
	for i := range claims {
		if err := r.moveAway(ctx, &d, &claims[i]); err != nil {
			return nil, err
		}
	}
	for _, move := range d.moves { // the Sites of these SiteMoves have left the database, or need not leave it
		if phase := move.Status.Phase; phase.Ended() || phase == v1alpha1.MovePending || phase == "" {
			if err := r.deleteMove(ctx, move); err != nil {
				return nil, err
			}
		}
	}
	messages := map[string]string{}
	for database, n := range d.blocked {
		messages[database] = fmt.Sprintf("No other database of the pool has room for %d of the Sites. Add a database, or raise the capacity of one.", n)
	}
	for database, n := range d.refused {
		messages[database] = strings.TrimSpace(fmt.Sprintf("%s kube-apiserver refused the SiteMoves for %d of the Sites. See the errors in the controller's log.", messages[database], n))
	}
	return messages, nil
}

// stuck reports whether a move has not begun because of a reason that has lasted for drainRetry.
func stuck(move *v1alpha1.SiteMove) bool {
	stalled := meta.FindStatusCondition(move.Status.Conditions, v1alpha1.ConditionStalled)
	return move.Status.Phase == v1alpha1.MovePending && stalled != nil && stalled.Status == metav1.ConditionTrue && time.Since(stalled.LastTransitionTime.Time) > drainRetry
}

// deleteMove deletes a SiteMove of the drain. If kube-apiserver refuses that, it is tried again by the next
// reconcile.
func (r *Reconciler) deleteMove(ctx context.Context, move *v1alpha1.SiteMove) error {
	err := client.IgnoreNotFound(r.Client.Delete(ctx, move))
	if err != nil && !moveRefused(ctx, move, err) {
		return fmt.Errorf("delete SiteMove %s/%s: %w", move.Namespace, move.Name, err)
	}
	return nil
}

// moveRefused reports whether an error concerns one SiteMove only, for example because of a quota, or
// because a tenant has a SiteMove with the same name. It logs such an error, which must not stop the drain
// for other tenants.
func moveRefused(ctx context.Context, move *v1alpha1.SiteMove, err error) bool {
	if !apierrors.IsAlreadyExists(err) && apply.Refusal(err) == "" {
		return false
	}
	log.FromContext(ctx).Error(err, "kube-apiserver refused to create or delete a SiteMove of the drain; the controller will retry", "siteMove", move.Namespace+"/"+move.Name)
	return true
}

// drain is the state of one reconcile.
type drain struct {
	class  *v1alpha1.SiteClass
	claims []v1alpha1.SiteClaim
	sites  map[types.UID]*v1alpha1.Site
	// moves are the SiteMoves of the drain. moveAway removes the SiteMoves of Sites that have yet to leave
	// their database, so that those that are no longer needed remain.
	moves map[types.NamespacedName]*v1alpha1.SiteMove
	// moving is the number of SiteMoves that have not ended.
	moving int
	// blocked is the number of Sites without room in another database, by the database that they are in.
	blocked map[string]int
	// refused is the number of Sites whose SiteMove cannot be created, by the database that they are in.
	refused map[string]int
}

// moveAway creates a SiteMove for the Site of a SiteClaim, if the Site is in a database that is drained and
// can be moved now. It counts the Site in d.blocked or d.refused if there is no room or if kube-apiserver
// refuses the SiteMove.
func (r *Reconciler) moveAway(ctx context.Context, d *drain, claim *v1alpha1.SiteClaim) error {
	placement := claim.Spec.Placement
	if placement == nil || placement.ClassName != d.class.Name {
		return nil
	}
	database, site := d.class.Database(placement.Database), d.sites[claim.Spec.SiteRef.UID]
	if database == nil || !database.Drain || site == nil {
		return nil
	}
	name := types.NamespacedName{Namespace: site.Namespace, Name: "drain-" + placement.Database}
	former := d.moves[name]
	delete(d.moves, name)
	switch {
	case former != nil && !former.Status.Phase.Ended():
		return nil
	case former != nil && former.Status.Phase == v1alpha1.MoveRolledBack && former.Status.PhaseTime != nil && time.Since(former.Status.PhaseTime.Time) < drainRetry:
		return nil
	case !movable(site):
		return nil
	case d.class.RoomFor(site.Spec.Storage.Postgres.Pool.Region, placement, d.claims) == nil:
		d.blocked[placement.Database]++
		return nil
	case d.moving >= maxDrains:
		return nil
	case former != nil:
		if err := r.deleteMove(ctx, former); err != nil {
			return err
		}
	}
	move := &v1alpha1.SiteMove{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{v1alpha1.DrainLabel: d.class.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Site", Name: site.Name, UID: site.UID}},
		},
		Spec: v1alpha1.SiteMoveSpec{SiteName: site.Name, To: site.Spec.Storage, Decision: v1alpha1.MoveConfirm},
	}
	switch err := r.Client.Create(ctx, move, apply.FieldOwner); {
	case err == nil:
		d.moving++
	case moveRefused(ctx, move, err):
		d.refused[placement.Database]++
	default:
		return fmt.Errorf("create SiteMove %s: %w", name, err)
	}
	return nil
}

// movable reports whether a Site of a pool can be moved now: it is served, and neither paused nor deleted
// nor the subject of another SiteMove.
func movable(site *v1alpha1.Site) bool {
	_, paused := site.Annotations[v1alpha1.PausedAnnotation]
	postgres := site.Spec.Storage.Postgres
	return !paused && site.DeletionTimestamp.IsZero() && site.Status.Move == nil && postgres != nil && postgres.Pool != nil &&
		meta.IsStatusConditionTrue(site.Status.Conditions, v1alpha1.ConditionStorageReady)
}
