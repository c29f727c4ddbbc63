package site

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// moveOwner is the field manager of status.move of Sites. The Site controller, which has another field
// manager, does not change this field.
const moveOwner = client.FieldOwner("paddock-controller-move")

// mirror sets status.move of the Site, which the API servers follow. With spec.toSite it sets status.move
// of both Sites. The Site that does not hold the siteID is first, so that writes end there before they
// begin at the other Site. mirror skips a Site that is part of another move.
func (r *MoveReconciler) mirror(ctx context.Context, s *moveScope) error {
	if s.status.Phase == v1alpha1.MovePending {
		return nil
	}
	sites := []*v1alpha1.Site{s.site}
	if s.crosses() {
		sites = []*v1alpha1.Site{s.target, s.site}
		if s.serving() == s.target {
			sites = []*v1alpha1.Site{s.site, s.target}
		}
	}
	for i, site := range sites {
		if site == nil || s.occupied(site) {
			continue
		}
		wanted := v1alpha1.SiteMoveReference{
			Name: s.move.Name, UID: string(s.move.UID), Phase: s.status.Phase, Direction: s.status.Direction,
			Elsewhere: i < len(sites)-1 && s.status.Phase != v1alpha1.MoveSwitching,
		}
		if site.Namespace != s.move.Namespace {
			wanted.Namespace = s.move.Namespace
		}
		if current := site.Status.Move; current != nil && *current == wanted {
			continue
		}
		if err := r.applyMove(ctx, site, &wanted); err != nil {
			return err
		}
		site.Status.Move = &wanted
	}
	return nil
}

// occupy sets status.move of the Site before the move changes anything, so that no other move of the Site
// begins. If another move has set it meanwhile, it returns a conflict.
func (r *MoveReconciler) occupy(ctx context.Context, s *moveScope) error {
	if s.site.Status.Move != nil {
		return nil
	}
	reference := v1alpha1.SiteMoveReference{Name: s.move.Name, UID: string(s.move.UID), Phase: s.status.Phase, Direction: s.status.Direction}
	if err := r.applyMove(ctx, s.site, &reference); err != nil {
		return err
	}
	s.site.Status.Move = &reference
	return nil
}

// applyMove sets status.move of a Site, or removes it if reference is nil. If the Site has changed since it
// was read, applyMove returns a conflict.
func (r *MoveReconciler) applyMove(ctx context.Context, site *v1alpha1.Site, reference *v1alpha1.SiteMoveReference) error {
	status := map[string]any{}
	if reference != nil {
		move := map[string]any{
			"name": reference.Name, "uid": reference.UID, "phase": string(reference.Phase), "direction": string(reference.Direction),
		}
		if reference.Namespace != "" {
			move["namespace"] = reference.Namespace
		}
		if reference.Elsewhere {
			move["elsewhere"] = true
		}
		status["move"] = move
	}
	config := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": site.Namespace, "name": site.Name, "uid": string(site.UID), "resourceVersion": site.ResourceVersion},
		"status":   status,
	}}
	config.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Site"))
	if err := r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), moveOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status.move of Site %s/%s: %w", site.Namespace, site.Name, err)
	}
	site.ResourceVersion = config.GetResourceVersion()
	return nil
}

// writeMove writes the status of the SiteMove, unless it is unchanged.
func (r *MoveReconciler) writeMove(ctx context.Context, s *moveScope) error {
	before := *s.move.Status.DeepCopy()
	before.Copy = nil
	s.status.ObservedGeneration = s.move.Generation
	s.status.Progress = progressOf(&s.status, s.move.Status.Copy)
	for _, condition := range moveConditions(s) {
		condition.ObservedGeneration, condition.LastTransitionTime = s.move.Generation, metav1.NewTime(r.Now()).Rfc3339Copy()
		meta.SetStatusCondition(&s.status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(before, s.status) {
		return nil
	}
	// The write has the resourceVersion that was read, so that a process that was suspended, and is no
	// longer the leader, does not write an earlier phase. It is also refused with a conflict if an API
	// server has reported meanwhile.
	return apply.Status(ctx, r.Client, s.move, &s.status)
}

// moveConditions returns the conditions Ready, Reconciling and Stalled (kstatus). It sets s.stalled if the
// move was rolled back without a decision.
func moveConditions(s *moveScope) []metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMoving}
	reconciling := metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMoving}
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMoving}
	switch s.status.Phase {
	case v1alpha1.MovePending:
		ready.Message = "The move is being prepared. The Site serves reads and writes."
	case v1alpha1.MoveCopying:
		ready.Message = "The data is being copied. The Site serves reads and writes."
	case v1alpha1.MoveDraining:
		ready.Message = "Deliveries to webhooks are being stopped. The Site serves reads and writes."
	case v1alpha1.MovePausing, v1alpha1.MoveCatchingUp, v1alpha1.MoveSwitching:
		ready.Message = "The Site serves reads, and refuses writes."
	case v1alpha1.MoveRollingBack:
		ready.Message = "The copy is being deleted. The Site serves reads and writes."
	case v1alpha1.MoveSwitched:
		ready.Status, ready.Reason = metav1.ConditionTrue, v1alpha1.ReasonAwaitingDecision
		ready.Message = "The Site is served from the new storage. Set spec.decision to Confirm to delete the data in the former one, or to RollBack to return."
	case v1alpha1.MoveCompleted:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, v1alpha1.ReasonMoved, "The Site was moved."
	case v1alpha1.MoveRolledBack:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, v1alpha1.ReasonRolledBack, "The Site is served from the storage that it had before the move."
		if s.status.Failure != "" {
			ready.Status = metav1.ConditionFalse
			s.stalled = &verdict{metav1.ConditionFalse, v1alpha1.ReasonRolledBack, s.status.Failure}
		}
	}
	if s.waiting != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, s.waiting.reason, s.waiting.message
	}
	if s.stalled != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, s.stalled.reason, s.stalled.message
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, s.stalled.reason, s.stalled.message
	}
	if ready.Status == metav1.ConditionTrue || s.stalled != nil {
		reconciling.Status = metav1.ConditionFalse
	}
	return []metav1.Condition{ready, reconciling, stalled}
}

// progressOf returns a text for people about the progress of the phase.
func progressOf(status *v1alpha1.SiteMoveStatus, c *v1alpha1.MoveCopy) string {
	switch {
	case status.Phase.Ended() || status.Phase == v1alpha1.MoveSwitched:
		return "100 %"
	case c == nil || c.Phase != status.Phase || c.Direction != status.Direction:
		return ""
	case c.Done:
		return "100 %"
	case c.Total <= 0:
		return fmt.Sprintf("pass %d", c.Pass)
	default:
		return fmt.Sprintf("pass %d: %d %%", c.Pass, min(99, c.Compared*100/c.Total))
	}
}

// defaultWebhookTimeout is the time limit of an attempt if the Webhook does not set one.
const defaultWebhookTimeout = 15 * time.Second

// timeoutOf returns the time limit of an attempt to deliver to a webhook.
func timeoutOf(hook *v1alpha1.Webhook) time.Duration {
	if hook.Spec.TimeoutSeconds == 0 {
		return defaultWebhookTimeout
	}
	return time.Duration(hook.Spec.TimeoutSeconds) * time.Second
}
