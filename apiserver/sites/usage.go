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
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	// usageInterval is how often the fill of each site is looked at, in memory.
	usageInterval = 5 * time.Second
	// fieldOwner owns the StorageNearLimit condition of Sites.
	fieldOwner = "paddock-apiserver"
)

// reportUsage keeps the StorageNearLimit condition of every site true to its
// stores' word. Nothing is written unless the condition changes.
func (s *Sites) reportUsage(ctx context.Context) {
	ticker := time.NewTicker(usageInterval)
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
				slog.WarnContext(ctx, "report the usage of a site", "site", site.ID, "error", err)
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
	current := meta.FindStatusCondition(object.Status.Conditions, sitesv1.ConditionStorageNearLimit)
	wanted := nearLimit(site.Store.Stats(), current)
	if wanted == nil || current != nil && current.Status == wanted.Status {
		return nil
	}
	wanted.ObservedGeneration = object.Generation
	wanted.LastTransitionTime = metav1.Now()
	return s.applyCondition(ctx, &object, *wanted)
}

// nearLimit returns the condition that a site's usage calls for: true from 80 %
// of a limit, false again below 75 %, so that it does not flap. A site that never
// came near has none.
func nearLimit(stats store.Stats, current *metav1.Condition) *metav1.Condition {
	share := max(percent(stats.Records, stats.MaxRecords), percent(stats.Bytes, stats.MaxBytes))
	isNear := current != nil && current.Status == metav1.ConditionTrue
	message := fmt.Sprintf("%d of %d records, %d of %d bytes", stats.Records, stats.MaxRecords, stats.Bytes, stats.MaxBytes)
	switch {
	case share >= 80 || isNear && share >= 75:
		return &metav1.Condition{
			Type: sitesv1.ConditionStorageNearLimit, Status: metav1.ConditionTrue, Reason: "NearLimit",
			Message: message + ": raise the limits in spec.storage.cluster or purge records",
		}
	case current != nil:
		return &metav1.Condition{
			Type: sitesv1.ConditionStorageNearLimit, Status: metav1.ConditionFalse, Reason: "WithinLimit", Message: message,
		}
	default:
		return nil
	}
}

func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
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
