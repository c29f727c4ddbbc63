package site

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// ensureFinalizer keeps the finalizer on the Site while, and only while, its
// deletion would have to remove data. It is there before anything is claimed.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) (step, error) {
	want := s.site.Spec.DeletionPolicy == v1alpha1.DeletionDelete
	if controllerutil.ContainsFinalizer(s.site, v1alpha1.SiteFinalizer) == want {
		return proceed, nil
	}
	return leave, r.setFinalizer(ctx, s.site, want)
}

func (r *Reconciler) setFinalizer(ctx context.Context, site *v1alpha1.Site, want bool) error {
	changed := site.DeepCopy()
	if want {
		controllerutil.AddFinalizer(changed, v1alpha1.SiteFinalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.SiteFinalizer)
	}
	// A merge patch replaces the whole list, so it must not meet a newer one.
	patch := client.MergeFromWithOptions(site, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, apply.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the finalizers: %w", err)
	}
	return nil
}
