package sites

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// reportInterval is how often the state of each site is looked at, in memory.
	reportInterval = 5 * time.Second
	// fieldOwner owns the API servers' conditions of Sites.
	fieldOwner = "paddock-apiserver"
)

// report keeps the conditions of every site that API servers report true to its store's
// word. Nothing is written unless a condition changes.
func (s *Sites) report(ctx context.Context) {
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.mu.RLock()
		served := maps.Clone(s.served)
		s.mu.RUnlock()
		for _, site := range served {
			if err := s.reportSite(ctx, site); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "report the state of a site", "site", site.ID, "error", err)
			}
		}
	}
}

func (s *Sites) reportSite(ctx context.Context, site Site) error {
	if site.Store == nil {
		return nil
	}
	var object sitesv1.Site
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: site.Access.Namespace, Name: site.Access.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if inPostgres, ok := site.Store.(*database); ok {
		return inPostgres.reportIndex(func(condition *metav1.Condition) error { return s.setCondition(ctx, &object, condition) })
	}
	near := nearLimit(site.Store.Stats(), meta.FindStatusCondition(object.Status.Conditions, sitesv1.ConditionStorageNearLimit))
	return s.setCondition(ctx, &object, near)
}

// setCondition writes a condition, unless it is nil or there with that status.
func (s *Sites) setCondition(ctx context.Context, object *sitesv1.Site, wanted *metav1.Condition) error {
	if wanted == nil || meta.IsStatusConditionPresentAndEqual(object.Status.Conditions, wanted.Type, wanted.Status) {
		return nil
	}
	wanted.ObservedGeneration = object.Generation
	wanted.LastTransitionTime = metav1.Now()
	return s.applyCondition(ctx, object, *wanted)
}

// applyCondition writes one condition by server-side apply, which leaves the
// controller's conditions alone.
func (s *Sites) applyCondition(ctx context.Context, site *sitesv1.Site, condition metav1.Condition) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("encode a condition: %w", err)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": site.Namespace, "name": site.Name, "uid": string(site.UID)},
		"status":   map[string]any{"conditions": []any{fields}},
	}}
	patch.SetGroupVersionKind(sitesv1.GroupVersion.WithKind("Site"))
	return s.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldOwner), client.ForceOwnership)
}
