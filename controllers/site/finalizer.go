package site

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// ensureFinalizer sets the finalizer on a Site with deletionPolicy Delete and removes it from a Site
// with another policy. It runs before the claims, so that a Site whose data must be deleted has no
// claims and no data without the finalizer.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) (step, error) {
	want := s.site.Spec.DeletionPolicy == v1alpha1.DeletionDelete
	if controllerutil.ContainsFinalizer(s.site, v1alpha1.SiteFinalizer) == want {
		return proceed, nil
	}
	return leave, r.setFinalizer(ctx, s.site, want)
}

func (r *Reconciler) setFinalizer(ctx context.Context, site *v1alpha1.Site, want bool) error {
	_, err := apply.Finalizer(ctx, r.Client, site, v1alpha1.SiteFinalizer, want)
	return err
}
