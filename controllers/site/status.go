package site

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// ownConditions are the conditions that the controller sets. It does not change other conditions,
// such as StorageNearLimit, which the API servers set.
var ownConditions = []string{
	v1alpha1.ConditionReady,
	v1alpha1.ConditionReconciling,
	v1alpha1.ConditionStalled,
	v1alpha1.ConditionAccepted,
	v1alpha1.ConditionStorageReady,
	v1alpha1.ConditionSchemaReady,
	v1alpha1.ConditionExposed,
	v1alpha1.ConditionIssuersReady,
}

// transientReasons are the reasons of failures that can end without action by a person.
var transientReasons = []string{
	v1alpha1.ReasonDatabaseUnreachable, v1alpha1.ReasonMigrationFailed,
	v1alpha1.ReasonProvisioning, v1alpha1.ReasonPodPending, v1alpha1.ReasonUnavailable,
	v1alpha1.ReasonRoutePending,
}

// statusOf returns the part of the status that the controller sets, given the findings of a
// reconcile.
func statusOf(site *v1alpha1.Site, found findings, publicURL string, now time.Time) v1alpha1.SiteStatus {
	status := v1alpha1.SiteStatus{
		ObservedGeneration: site.Generation,
		SiteID:             site.SiteID(),
		SiteKey:            found.siteKey,
		Database:           found.database,
	}
	accepted := known(site, v1alpha1.ConditionAccepted, found.accepted)
	storageReady := known(site, v1alpha1.ConditionStorageReady, found.storageReady)
	if found.storageReady == nil {
		status.SiteKey, status.Database = site.Status.SiteKey, site.Status.Database
	}
	if accepted.status == metav1.ConditionTrue {
		status.URL = cmp.Or(found.url, site.Status.URL, publicURL+"/site/"+status.SiteID)
	}
	// The needs are in reverse order of the phases: summarise reports the last one that is not true,
	// that of the earliest phase, which is the root cause.
	needs := []verdict{storageReady, accepted}
	verdicts := map[string]verdict{v1alpha1.ConditionAccepted: accepted, v1alpha1.ConditionStorageReady: storageReady}
	if site.Spec.Storage.Type == v1alpha1.StoragePostgres {
		schemaReady := known(site, v1alpha1.ConditionSchemaReady, found.schemaReady)
		needs, verdicts[v1alpha1.ConditionSchemaReady] = append([]verdict{schemaReady}, needs...), schemaReady
	}
	if site.Spec.Exposure != nil {
		exposed := known(site, v1alpha1.ConditionExposed, found.exposed)
		needs, verdicts[v1alpha1.ConditionExposed] = append([]verdict{exposed}, needs...), exposed
	}
	if len(site.Spec.Access.Issuers) > 0 {
		verdicts[v1alpha1.ConditionIssuersReady] = known(site, v1alpha1.ConditionIssuersReady, found.issuersReady)
	}
	ready, reconciling, stalled := summarise(needs, found, status.URL)
	verdicts[v1alpha1.ConditionReady] = ready
	verdicts[v1alpha1.ConditionReconciling] = reconciling
	verdicts[v1alpha1.ConditionStalled] = stalled
	// SetStatusCondition keeps lastTransitionTime of conditions that do not change.
	status.Conditions = own(site.Status).Conditions
	for _, condition := range ownConditions {
		v, spoken := verdicts[condition]
		if !spoken { // such as Exposed after spec.exposure was removed
			meta.RemoveStatusCondition(&status.Conditions, condition)
			continue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type:               condition,
			Status:             v.status,
			Reason:             v.reason,
			Message:            v.message,
			ObservedGeneration: site.Generation,
			LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	sortConditions(status.Conditions)
	return status
}

// known returns the verdict of this reconcile, or else that of the existing condition. Without either,
// it returns a verdict with the status Unknown.
func known(site *v1alpha1.Site, condition string, found *verdict) verdict {
	if found != nil {
		return *found
	}
	if c := meta.FindStatusCondition(site.Status.Conditions, condition); c != nil {
		return verdict{c.Status, c.Reason, c.Message}
	}
	return verdict{metav1.ConditionUnknown, v1alpha1.ReasonPending, "The controller has not determined this condition yet."}
}

// summarise returns the conditions Ready, Reconciling and Stalled (kstatus). Ready is true if all
// needs are true and the Site is not being deleted. If a need is not true, Ready has the verdict of the
// last such need. Stalled is true if nothing changes until a person acts.
func summarise(needs []verdict, found findings, url string) (ready, reconciling, stalled verdict) {
	ready = verdict{metav1.ConditionTrue, v1alpha1.ReasonServing, "The site is served at " + url + "."}
	for _, v := range needs {
		if v.status != metav1.ConditionTrue {
			ready = v
		}
	}
	if found.deleting {
		ready = verdict{metav1.ConditionFalse, v1alpha1.ReasonDeleting, "The Site is being deleted."}
	}
	reconciling = verdict{metav1.ConditionFalse, ready.reason, ""}
	stalled = reconciling
	switch {
	case found.failed != "":
		reconciling = verdict{metav1.ConditionTrue, v1alpha1.ReasonRetrying, found.failed}
	case found.deleting || ready.status == metav1.ConditionUnknown || slices.Contains(transientReasons, ready.reason):
		reconciling = verdict{metav1.ConditionTrue, ready.reason, ready.message}
	case ready.status == metav1.ConditionFalse:
		stalled = verdict{metav1.ConditionTrue, ready.reason, ready.message}
	}
	return ready, reconciling, stalled
}

// patchStatus applies the status in one write, or none if it is unchanged.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope) error {
	before := own(s.site.Status)
	after := statusOf(s.site, s.found, r.PublicURL, r.Now())
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	err := apply.Status(ctx, r.Client, s.site, &after)
	switch {
	case apierrors.IsConflict(err): // the Site has changed since it was read
		s.requeueAfter = apply.ConflictDelay
		return nil
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

// own returns the part of a status that the controller sets.
func own(status v1alpha1.SiteStatus) v1alpha1.SiteStatus {
	status = *status.DeepCopy()
	status.Move = nil // MoveReconciler sets it
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(ownConditions, c.Type)
	})
	sortConditions(status.Conditions)
	return status
}

func sortConditions(conditions []metav1.Condition) {
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}

// event records a normal event about an action of the controller. Package announce records the events
// about conditions.
func (r *Reconciler) event(site *v1alpha1.Site, reason, note string) {
	r.Recorder.Eventf(site, nil, corev1.EventTypeNormal, reason, "Reconcile", "%s", note)
}
