package site

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// protect labels the namespace before it has records to retain.
func (r *Reconciler) protect(ctx context.Context, s *scope) (step, error) {
	return proceed, r.markNamespace(ctx, s.site.Namespace, s)
}

// markNamespace sets RetainLabel on a namespace if a SiteClaim there has data to retain, and
// removes it otherwise. s is nil if the Site was deleted.
func (r *Reconciler) markNamespace(ctx context.Context, name string, s *scope) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, marked := namespace.Labels[v1alpha1.RetainLabel]
	retain := s != nil && s.siteClaim != nil && s.site.Spec.DeletionPolicy != v1alpha1.DeletionDelete
	if !retain {
		var err error
		if retain, err = r.retains(ctx, r.Client, name); err != nil {
			return err
		}
	}
	if marked && !retain { // the cache may be stale
		var err error
		if retain, err = r.retains(ctx, r.Live, name); err != nil {
			return err
		}
	}
	if marked == retain || namespace.DeletionTimestamp != nil {
		return nil
	}
	value := "null"
	if retain {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.RetainLabel, value)
	err := r.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), apply.FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the label of namespace %s: %w", name, err)
	}
	return nil
}

// releaseNamespace deletes the NamespaceClaim of a namespace that no longer exists, unless a SiteClaim has
// data there.
func (r *Reconciler) releaseNamespace(ctx context.Context, name string) error {
	// The claim is read first: if a Site of a new namespace takes it later, it cannot be deleted as read.
	claim, err := find[v1alpha1.NamespaceClaim](ctx, r.Live, client.ObjectKey{Name: name})
	if claim == nil || err != nil {
		return err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	for _, from := range []client.Reader{r.Client, r.Live} { // the cache may be stale
		if there, err := findInto(ctx, from, client.ObjectKey{Name: name}, namespace); there || err != nil {
			return err
		}
	}
	if retain, err := r.retains(ctx, r.Live, name); retain || err != nil {
		return err
	}
	return r.deleteAsRead(ctx, claim)
}

// retains reports whether a namespace has data that is retained when its Site is deleted.
func (r *Reconciler) retains(ctx context.Context, from client.Reader, namespace string) (bool, error) {
	claims := &v1alpha1.SiteClaimList{}
	if err := from.List(ctx, claims, client.MatchingFields{siteClaimNamespaceField: namespace}); err != nil {
		return false, fmt.Errorf("list the SiteClaims of namespace %s: %w", namespace, err)
	}
	for i := range claims.Items {
		ref := claims.Items[i].Spec.SiteRef
		holder, err := find[v1alpha1.Site](ctx, from, client.ObjectKey{Namespace: namespace, Name: ref.Name})
		if err != nil {
			return false, err
		}
		if holder == nil || holder.UID != ref.UID || holder.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
			return true, nil
		}
	}
	return false, nil
}
