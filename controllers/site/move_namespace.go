package site

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// maxFormer is the maximum number of former Sites in a SiteClaim, see SiteClaimSpec.Former. Beyond it,
// the oldest one is removed.
const maxFormer = 8

// crosses reports whether the move goes to a Site of another namespace.
func (s *moveScope) crosses() bool { return s.move.Spec.ToSite != nil }

// serving returns the Site that holds the siteID in the current phase. In MoveSwitching, it is the Site
// that held the siteID when that phase began. It is nil if the Site no longer exists.
func (s *moveScope) serving() *v1alpha1.Site {
	if !s.crosses() {
		return s.site
	}
	switch {
	case s.status.Phase == v1alpha1.MoveRollingBack, s.status.Phase == v1alpha1.MoveRolledBack:
		return s.site
	case s.status.Phase == v1alpha1.MoveSwitched, s.status.Phase == v1alpha1.MoveCompleted, s.status.Direction == v1alpha1.MoveBack:
		return s.target
	}
	return s.site
}

// occupied reports whether a Site is part of another move.
func (s *moveScope) occupied(site *v1alpha1.Site) bool {
	return site.Status.Move != nil && site.Status.Move.UID != string(s.move.UID)
}

// switched reports whether writes since the switch can be in the new storage.
func (s *moveScope) switched() bool {
	return s.status.Phase == v1alpha1.MoveSwitched || s.status.Direction == v1alpha1.MoveBack && s.status.Phase != v1alpha1.MoveRollingBack
}

// findTarget reads the Site of spec.toSite. A Site that was created again since the copy began is not the
// target before the switch, because it can have another storage.
func (r *MoveReconciler) findTarget(ctx context.Context, s *moveScope) error {
	if !s.crosses() {
		return nil
	}
	to := s.move.Spec.ToSite
	target, err := find[v1alpha1.Site](ctx, r.Live, client.ObjectKey{Namespace: to.Namespace, Name: to.Name})
	if target != nil && s.status.ToSiteUID != "" && target.UID != s.status.ToSiteUID && !s.switched() {
		target = nil
	}
	s.target = target
	return err
}

// agrees reports whether the owner of the target agrees to the move, by spec.takeOver and the same siteID
// of a Site that is not being deleted. It is checked again before the switch.
func (s *moveScope) agrees() bool {
	return s.target != nil && s.target.DeletionTimestamp.IsZero() && s.target.SiteID() == s.site.SiteID() &&
		s.target.Spec.TakeOver != nil && *s.target.Spec.TakeOver == v1alpha1.SiteName{Namespace: s.site.Namespace, Name: s.site.Name}
}

// targetReady reports whether the target agrees and waits, its namespace has the webhooks, and the move
// between the storages is supported. If it returns false without an error, the move is stalled.
func (r *MoveReconciler) targetReady(ctx context.Context, s *moveScope) (bool, error) {
	to := s.move.Spec.ToSite
	from := s.site.Spec.Storage.Postgres
	switch {
	case to.Namespace == s.move.Namespace:
		s.stall(v1alpha1.ReasonTargetNotReady, "spec.toSite.namespace is the namespace of the Site itself. Use spec.to to move to another storage.")
	case !s.agrees():
		s.stall(v1alpha1.ReasonTargetNotReady, fmt.Sprintf(
			"There is no Site %q in namespace %q that agrees to the move. Create it with spec.siteID %q and spec.takeOver {namespace: %s, name: %s}.",
			to.Name, to.Namespace, s.site.SiteID(), s.site.Namespace, s.site.Name))
	case externalOf(s.target) == nil || from != nil && from.External == nil:
		s.stall(v1alpha1.ReasonTargetNotReady, "To another namespace, a Site moves only from storage.type Cluster or storage.postgres.external, and only to storage.postgres.external.")
	case s.occupied(s.target):
		s.stall(v1alpha1.ReasonMoveInProgress, fmt.Sprintf("A SiteMove of Site %q in namespace %q has not ended.", to.Name, to.Namespace))
	case !awaitsItsMove(s.target):
		s.stall(v1alpha1.ReasonTargetNotReady, fmt.Sprintf(
			"Site %q in namespace %q does not have the condition Accepted with the reason %s. See the condition for its reason.", to.Name, to.Namespace, v1alpha1.ReasonAwaitingMove))
	default:
		return r.webhooksThere(ctx, s)
	}
	return false, nil
}

// awaitsItsMove reports whether a Site holds its namespace and waits for a move.
func awaitsItsMove(site *v1alpha1.Site) bool {
	accepted := meta.FindStatusCondition(site.Status.Conditions, v1alpha1.ConditionAccepted)
	return accepted != nil && accepted.Reason == v1alpha1.ReasonAwaitingMove && accepted.ObservedGeneration == site.Generation
}

// webhooksThere reports whether the namespace to which the current direction goes has Webhooks and
// WebhookEvents with the names of those in the other namespace, because pending deliveries go to the
// Webhook with the same name. If it returns false without an error, the move is stalled. It returns true
// for a move within the namespace.
func (r *MoveReconciler) webhooksThere(ctx context.Context, s *moveScope) (bool, error) {
	if !s.crosses() {
		return true, nil
	}
	from, to := s.move.Namespace, s.move.Spec.ToSite.Namespace
	if s.status.Direction == v1alpha1.MoveBack {
		from, to = to, from
	}
	for _, kind := range []string{"Webhook", "WebhookEvent"} {
		needed, err := r.namesOf(ctx, kind, from)
		if err != nil {
			return false, err
		}
		there, err := r.namesOf(ctx, kind, to)
		if err != nil {
			return false, err
		}
		for _, name := range needed {
			if !slices.Contains(there, name) {
				s.stall(v1alpha1.ReasonWebhooksMissing, fmt.Sprintf(
					"%s %q of namespace %q does not exist in namespace %q. Create it in %[4]q, or delete it in %[3]q.", kind, name, from, to))
				return false, nil
			}
		}
	}
	return true, nil
}

func (r *MoveReconciler) namesOf(ctx context.Context, kind, namespace string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the %ss of namespace %s: %w", kind, namespace, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// stepWithoutSite takes the next step of a move to another namespace if one or both of its Sites no longer
// exist. done reports whether it did. If done is false, the step of the phase follows.
func (r *MoveReconciler) stepWithoutSite(ctx context.Context, s *moveScope) (done bool, err error) {
	serving := s.serving()
	if serving == nil {
		claim, err := r.claimOf(ctx, s)
		if err != nil {
			return true, err
		}
		const deleted = "The Site with the data was deleted during the move."
		other := cmp.Or(s.site, s.target)
		switch {
		case claim != nil && s.status.Phase == v1alpha1.MoveSwitching && other != nil && claim.HeldBy(other): // both storages have all data
			return true, r.awaitOther(ctx, s, other)
		case claim != nil && s.status.Direction == v1alpha1.MoveForward && !s.switched() && claim.Spec.SiteRef.Namespace == s.move.Namespace:
			if s.status.Phase == v1alpha1.MoveRollingBack {
				return false, nil
			}
			s.status.Phase, s.status.Failure = v1alpha1.MoveRollingBack, deleted
			return true, nil
		case claim == nil || !s.switched() || s.site == nil:
			s.status.Phase, s.status.Failure = v1alpha1.MoveRolledBack, deleted
			return true, nil
		}
		s.stall(v1alpha1.ReasonTargetNotReady, fmt.Sprintf("Site %q in namespace %q, which has the data, was deleted. Create it again with the same siteID and spec.storage.", s.move.Spec.ToSite.Name, s.move.Spec.ToSite.Namespace))
		return true, nil
	}
	if s.site != nil && s.target != nil {
		return false, nil
	}
	gone := s.deletedSite()
	switch s.status.Phase {
	case v1alpha1.MoveCopying, v1alpha1.MoveDraining:
		if s.status.Direction == v1alpha1.MoveBack {
			r.giveUp(s, gone)
			return true, nil
		}
		s.status.Phase, s.status.Failure = v1alpha1.MoveRollingBack, gone
		return true, nil
	case v1alpha1.MovePausing, v1alpha1.MoveCatchingUp:
		r.giveUp(s, gone)
		return true, nil
	case v1alpha1.MoveSwitched:
		if s.move.Spec.Decision == v1alpha1.MoveRollBack {
			s.stall(v1alpha1.ReasonSiteNotReady, fmt.Sprintf("Site %q of this namespace was deleted. Create it again to return to it.", s.move.Spec.SiteName))
			return true, nil
		}
	}
	return false, nil
}

// deletedSite returns a text for people that names the Site of the move that no longer exists. One of the
// two Sites must exist.
func (s *moveScope) deletedSite() string {
	deleted := *s.move.Spec.ToSite
	if s.target != nil {
		deleted = v1alpha1.SiteName{Namespace: s.move.Namespace, Name: s.move.Spec.SiteName}
	}
	return fmt.Sprintf("Site %q in namespace %q was deleted during the move.", deleted.Name, deleted.Namespace)
}

// awaitOther waits until other, the Site to which the SiteClaim was given, is served, and then ends the
// phase. The Site that held the SiteClaim before was deleted. After maxPause, the move is stalled.
func (r *MoveReconciler) awaitOther(ctx context.Context, s *moveScope, other *v1alpha1.Site) error {
	s.requeueAfter = moveRetry
	served, err := r.isServed(ctx, s, other)
	switch {
	case err != nil:
		return err
	case served:
		r.settle(s)
	case r.tooLong(s):
		s.stall(v1alpha1.ReasonTargetNotReady, fmt.Sprintf("Site %q in namespace %q, which holds the siteID, is not ready. See its conditions.", other.Name, other.Namespace))
	}
	return nil
}

// switchSite gives the SiteClaim to the other Site, and waits until the API servers use that Site. If that
// Site cannot be used, switchSite gives the SiteClaim back. No API server writes meanwhile: status.move of
// both Sites has the phase Switching.
func (r *MoveReconciler) switchSite(ctx context.Context, s *moveScope) error {
	s.requeueAfter = moveRetry
	before, after := v1alpha1.SiteName{Namespace: s.move.Namespace, Name: s.move.Spec.SiteName}, s.target
	other, otherSite := *s.move.Spec.ToSite, s.site
	if s.status.Direction == v1alpha1.MoveBack {
		before, after, other, otherSite = other, otherSite, before, after
	}
	switch {
	case s.status.Failure != "":
	case after == nil:
		s.status.Failure = s.deletedSite()
	case s.status.Direction == v1alpha1.MoveForward && !s.agrees():
		s.status.Failure = "The Site of spec.toSite no longer agrees to the move by its spec.siteID and spec.takeOver."
	case r.tooLong(s):
		s.status.Failure = fmt.Sprintf("Site %q in namespace %q did not become ready within the maximum pause of writes. See its conditions.", after.Name, after.Namespace)
	}
	failed := s.status.Failure != ""
	if failed {
		before, after = other, otherSite
	}
	if held, err := r.giveClaim(ctx, s, before, after); err != nil || !held {
		return err
	}
	if ready, err := r.isServed(ctx, s, after); err != nil || !ready {
		return err
	}
	if failed {
		r.giveUp(s, s.status.Failure)
		return nil
	}
	if r.settle(s) {
		r.event(after, "Switched", fmt.Sprintf("SiteMove %s/%s has given siteID %q to this Site.", s.move.Namespace, s.move.Name, after.SiteID()))
	}
	return nil
}

// giveClaim sets after in the SiteClaim, by one update with a resourceVersion, if the Site named before, or
// an earlier Site with the name of after, holds the SiteClaim. It adds before to the former Sites. held is
// false if another Site holds the SiteClaim, or if the SiteClaim does not exist.
func (r *MoveReconciler) giveClaim(ctx context.Context, s *moveScope, before v1alpha1.SiteName, after *v1alpha1.Site) (held bool, err error) {
	claim, err := find[v1alpha1.SiteClaim](ctx, r.Live, client.ObjectKey{Name: after.SiteID()})
	if err != nil || claim == nil || claim.Spec.SiteKey != s.status.SiteKey {
		return false, err
	}
	if claim.HeldBy(after) {
		return true, nil
	}
	now := nameIn(claim.Spec.SiteRef)
	if to := (v1alpha1.SiteName{Namespace: after.Namespace, Name: after.Name}); now != before && now != to {
		return false, nil
	}
	if now == before {
		former := slices.DeleteFunc(slices.Clone(claim.Spec.Former), func(ref v1alpha1.SiteReference) bool {
			return nameIn(ref) == before || ref.Namespace == after.Namespace && ref.Name == after.Name
		})
		former = append(former, claim.Spec.SiteRef)
		claim.Spec.Former = former[max(0, len(former)-maxFormer):]
	}
	claim.Spec.SiteRef = v1alpha1.SiteReference{Namespace: after.Namespace, Name: after.Name, UID: after.UID}
	claim.Spec.External = externalSecret(&after.Spec.Storage)
	if err := r.updateClaim(ctx, claim); err != nil {
		return false, err
	}
	return true, nil
}

func nameIn(ref v1alpha1.SiteReference) v1alpha1.SiteName {
	return v1alpha1.SiteName{Namespace: ref.Namespace, Name: ref.Name}
}

// isServed reports whether the status of a Site says that it holds the siteID and that its storage is
// ready, and whether the connection of the move to this storage is published. The API servers then serve
// the Site.
func (r *MoveReconciler) isServed(ctx context.Context, s *moveScope, site *v1alpha1.Site) (bool, error) {
	if site.Status.ObservedGeneration != site.Generation || !isTrue(site, v1alpha1.ConditionAccepted) || !storageChecked(site, s.status.SiteKey) {
		return false, nil
	}
	if site.Spec.Storage.Type != v1alpha1.StoragePostgres {
		return true, nil
	}
	published, there, err := r.publishedConnection(ctx, site.Namespace, s.status.SiteKey)
	if err != nil || !there || !isTrue(site, v1alpha1.ConditionSchemaReady) {
		return false, err
	}
	name := v1alpha1.MoveFromName(s.move.Namespace)
	if site == s.target {
		name = v1alpha1.MoveToName(s.move.Namespace)
	}
	wanted, there, err := r.namedConnection(ctx, name, s.status.SiteKey)
	return there && wanted.SameDatabase(published), err
}
