package site

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// claimAttempts is the maximum number of reads of the claims in a reconcile, which then fails.
// Taking both claims needs three reads. The other reads are for lost races.
const claimAttempts = 8

// siteClaimNamespaceField is the field selector for the SiteClaims of a namespace.
const siteClaimNamespaceField = "spec.siteRef.namespace"

// claim claims the namespace and the siteID for the Site, and sets s.siteClaim. If the Site cannot
// have them, s.found.accepted says why. Each write is one create, or one update with a
// resourceVersion, so kube-apiserver decides races. After a write, claim reads the claims again.
func (r *Reconciler) claim(ctx context.Context, s *scope) (step, error) {
	var lost error
	for range claimAttempts {
		view, err := viewClaims(ctx, r.Live, s.site)
		if err != nil {
			return proceed, err
		}
		d := decideClaim(view)
		switch d.action {
		case keepClaims:
			s.siteClaim = view.siteClaim
			message := fmt.Sprintf("The Site holds siteID %q.", s.site.SiteID())
			s.found.accepted = &verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, message}
			return proceed, nil
		case refuseSite:
			s.found.accepted = &verdict{metav1.ConditionFalse, d.reason, d.message}
			return proceed, nil
		case awaitSite:
			return leave, nil
		case takeNamespace:
			err = r.takeNamespace(ctx, view)
		case takeSiteID:
			err = r.takeSiteID(ctx, view)
		}
		if err != nil && !lostRace(err) {
			return proceed, err
		}
		lost = errors.Join(lost, err)
	}
	return proceed, errors.Join(fmt.Errorf("the SiteClaim or NamespaceClaim changed during each of %d attempts", claimAttempts), lost)
}

func lostRace(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// viewClaims reads the claims from kube-apiserver. The order of the reads matters, see claimView.
func viewClaims(ctx context.Context, live client.Reader, site *v1alpha1.Site) (claimView, error) {
	v := claimView{site: site}
	var err error
	if v.namespaceClaim, err = find[v1alpha1.NamespaceClaim](ctx, live, client.ObjectKey{Name: site.Namespace}); err != nil {
		return v, err
	}
	if v.siteClaim, err = find[v1alpha1.SiteClaim](ctx, live, client.ObjectKey{Name: site.SiteID()}); err != nil {
		return v, err
	}
	if v.held() {
		return v, nil
	}
	if v.self, err = find[v1alpha1.Site](ctx, live, client.ObjectKeyFromObject(site)); err != nil {
		return v, err
	}
	if v.namespaceClaim != nil {
		key := client.ObjectKey{Namespace: site.Namespace, Name: v.namespaceClaim.Spec.SiteRef.Name}
		if v.holder, err = find[v1alpha1.Site](ctx, live, key); err != nil {
			return v, err
		}
	}
	claims := &v1alpha1.SiteClaimList{}
	if err := live.List(ctx, claims, client.MatchingFields{siteClaimNamespaceField: site.Namespace}); err != nil {
		return v, fmt.Errorf("list the SiteClaims of namespace %s: %w", site.Namespace, err)
	}
	v.siteClaims = claims.Items
	return v, nil
}

func (r *Reconciler) takeNamespace(ctx context.Context, v claimView) error {
	ref := v1alpha1.NamespacedSiteReference{Name: v.site.Name, UID: v.site.UID}
	if v.namespaceClaim == nil {
		claim := &v1alpha1.NamespaceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: v.site.Namespace},
			Spec:       v1alpha1.NamespaceClaimSpec{SiteRef: ref},
		}
		if err := r.Client.Create(ctx, claim, apply.FieldOwner); err != nil {
			return fmt.Errorf("create NamespaceClaim %s: %w", claim.Name, err)
		}
		return nil
	}
	claim := v.namespaceClaim.DeepCopy()
	claim.Spec.SiteRef = ref
	if err := r.Client.Update(ctx, claim, apply.FieldOwner); err != nil {
		return fmt.Errorf("take over NamespaceClaim %s: %w", claim.Name, err)
	}
	return nil
}

func (r *Reconciler) takeSiteID(ctx context.Context, v claimView) error {
	ref := v1alpha1.SiteReference{Namespace: v.site.Namespace, Name: v.site.Name, UID: v.site.UID}
	if v.siteClaim == nil {
		claim := &v1alpha1.SiteClaim{
			ObjectMeta: metav1.ObjectMeta{Name: v.site.SiteID()},
			Spec:       v1alpha1.SiteClaimSpec{SiteRef: ref, SiteKey: uuid.NewString()},
		}
		if err := r.Client.Create(ctx, claim, apply.FieldOwner); err != nil {
			return fmt.Errorf("create SiteClaim %s: %w", claim.Name, err)
		}
		r.event(v.site, "Claimed", fmt.Sprintf("Claimed siteID %q.", claim.Name))
		return nil
	}
	claim := v.siteClaim.DeepCopy()
	claim.Spec.SiteRef = ref
	if err := r.Client.Update(ctx, claim, apply.FieldOwner); err != nil {
		return fmt.Errorf("adopt SiteClaim %s: %w", claim.Name, err)
	}
	r.event(v.site, "Adopted",
		fmt.Sprintf("Adopted siteID %q with the retained data of an earlier Site of this name.", claim.Name))
	return nil
}
