package site

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

// recordKinds are the kinds with a site's data, in the order of deletion. Record is last: if there
// is no Record left, there is no other data left.
var recordKinds = []string{"AuditSegment", "RecordClaim", "RecordHistory", "WebhookDelivery", "WebhookDeliveryLog", "Record"}

// sweepBatch is the maximum number of objects that one request deletes. kube-apiserver ends
// requests after a minute, and its response contains all deleted objects.
const sweepBatch = 500

// sweepDelay is the delay before remaining objects are deleted again.
const sweepDelay = time.Second

const notErased = "Not all of the site's records have been deleted. To keep those that remain, set deletionPolicy to Retain. Cause: "

// finalize completes the deletion of a Site: with deletionPolicy Delete, it deletes the data and the
// claims, and then it removes the finalizer. Without the finalizer it does nothing, and the data and
// claims stay.
func (r *Reconciler) finalize(ctx context.Context, s *scope) (step, error) {
	site := s.site
	if site.DeletionTimestamp.IsZero() {
		return proceed, nil
	}
	s.found.deleting = true
	if !controllerutil.ContainsFinalizer(site, v1alpha1.SiteFinalizer) {
		return finish, nil
	}
	if site.Spec.DeletionPolicy == v1alpha1.DeletionDelete { // the policy may have been changed to Retain after the deletion
		wait, err := r.erase(ctx, s)
		if err != nil || wait > 0 {
			s.requeueAfter = wait
			return finish, err
		}
	}
	return leave, r.setFinalizer(ctx, site, false)
}

// erase waits for r.Drain after the deletion of the Site. Then it deletes the Site's data, and then
// its claims, so that after a crash the claim still has the key of the remaining data. It deletes
// neither data nor claims that the Site does not hold. It returns the delay before the next attempt,
// or zero if all is deleted.
func (r *Reconciler) erase(ctx context.Context, s *scope) (time.Duration, error) {
	site := s.site
	claim, err := find[v1alpha1.SiteClaim](ctx, r.Live, client.ObjectKey{Name: site.SiteID()})
	if err != nil {
		return 0, err
	}
	if claim != nil && claim.HeldBy(site) {
		if wait := site.DeletionTimestamp.Add(r.Drain).Sub(r.Now()); wait > 0 {
			return wait, nil
		}
		if wait, err := r.eraseRecords(ctx, s, claim); err != nil || wait > 0 {
			return wait, err
		}
		if err := r.deleteAsRead(ctx, claim); err != nil {
			return 0, err
		}
		r.event(site, "Erased", "Deleted all records and the SiteClaim.")
	}
	namespaceClaim, err := find[v1alpha1.NamespaceClaim](ctx, r.Live, client.ObjectKey{Name: site.Namespace})
	if err != nil || namespaceClaim == nil || !namespaceClaim.HeldBy(site) {
		return 0, err
	}
	return 0, r.deleteAsRead(ctx, namespaceClaim)
}

// eraseRecords deletes the data with the key of the claim. It returns the delay before the next attempt, or
// zero if all is deleted. If it waits for something, s.found.failed says for what.
func (r *Reconciler) eraseRecords(ctx context.Context, s *scope, claim *v1alpha1.SiteClaim) (time.Duration, error) {
	siteKey := claim.Spec.SiteKey
	if bad, err := r.storedElsewhere(ctx, s.site, claim); err != nil {
		return 0, err
	} else if bad != nil {
		s.found.failed = notErased + bad.message
		return databaseDelay, nil
	}
	if s.site.Spec.Storage.Type == v1alpha1.StoragePostgres {
		if s.site.Spec.Storage.Postgres.Provisioned != nil {
			return r.deleteDatabases(ctx, s, siteKey) // provision_delete.go
		}
		why, err := r.eraseDatabase(ctx, s.site, claim)
		if err != nil || why == "" {
			return 0, err
		}
		s.found.failed = notErased + why
		return databaseDelay, nil
	}
	left, err := r.sweep(ctx, s.site.Namespace, siteKey)
	if err != nil || left {
		return sweepDelay, err
	}
	return 0, nil
}

// sweep deletes the objects of all recordKinds with the site key. It reports whether objects remain.
func (r *Reconciler) sweep(ctx context.Context, namespace, siteKey string) (left bool, err error) {
	ours := fields.OneTermEqualSelector(siteKeyField, siteKey)
	for _, kind := range recordKinds {
		for last := ""; ; {
			first, err := firstOf(ctx, r.Live, kind, namespace, ours)
			if err != nil {
				return true, err
			}
			if first == "" {
				break
			}
			if first == last { // the last batch did not delete this object
				return true, nil
			}
			if err := r.deleteBatch(ctx, kind, namespace, ours); err != nil {
				return true, err
			}
			last = first
		}
	}
	return false, nil
}

func (r *Reconciler) deleteBatch(ctx context.Context, kind, namespace string, selector fields.Selector) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(recordsv1alpha1.GroupVersion.WithKind(kind))
	err := r.Client.DeleteAllOf(ctx, obj, &client.DeleteAllOfOptions{
		ListOptions: client.ListOptions{Namespace: namespace, FieldSelector: selector, Limit: sweepBatch},
	})
	if err != nil {
		return fmt.Errorf("delete the %s objects of the site in namespace %s: %w", kind, namespace, err)
	}
	return nil
}

// deleteAsRead deletes an object unless it has changed since it was read, because another Site may
// have taken it.
func (r *Reconciler) deleteAsRead(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}
