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
	// reportInterval is how often the state of each Site is checked, in memory.
	reportInterval = 5 * time.Second
	// fieldOwner is the field manager of the conditions that API servers set on Sites.
	fieldOwner = "paddock-apiserver"
)

// report writes the conditions that depend on stores when they change, until ctx ends.
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
				slog.WarnContext(ctx, "cannot report the state of a site; the server will retry", "site", site.Access.Namespace+"/"+site.Access.Name, "error", err)
			}
		}
	}
}

func (s *Sites) reportSite(ctx context.Context, site ServedSite) error {
	if site.Store == nil {
		return nil
	}
	var object sitesv1.Site
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: site.Access.Namespace, Name: site.Access.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	set := func(wanted *metav1.Condition) error {
		if !prepare(object.Status.Conditions, wanted, object.Generation) {
			return nil
		}
		return s.applyCondition(ctx, &object, *wanted)
	}
	if inPostgres, ok := site.Store.(*database); ok {
		return inPostgres.reportIndex(meta.FindStatusCondition(object.Status.Conditions, sitesv1.ConditionIndexReady), set)
	}
	near := nearLimit(site.Store.Stats(), meta.FindStatusCondition(object.Status.Conditions, sitesv1.ConditionStorageNearLimit))
	if near == nil {
		return nil
	}
	return set(near)
}

// prepare sets the generation and the time of transition of a condition. It reports whether the
// condition must be written, because the Site does not have it with that status for that
// generation. kubectl wait ignores conditions of older generations.
func prepare(there []metav1.Condition, wanted *metav1.Condition, generation int64) bool {
	wanted.ObservedGeneration, wanted.LastTransitionTime = generation, metav1.Now()
	last := meta.FindStatusCondition(there, wanted.Type)
	if last == nil || last.Status != wanted.Status {
		return true
	}
	wanted.LastTransitionTime = last.LastTransitionTime
	return last.ObservedGeneration < generation
}

// applyCondition writes one condition by server-side apply, which does not change the controller's
// conditions.
func (s *Sites) applyCondition(ctx context.Context, site *sitesv1.Site, condition metav1.Condition) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("encode condition %s of Site %s/%s: %w", condition.Type, site.Namespace, site.Name, err)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": site.Namespace, "name": site.Name, "uid": string(site.UID)},
		"status":   map[string]any{"conditions": []any{fields}},
	}}
	patch.SetGroupVersionKind(sitesv1.GroupVersion.WithKind("Site"))
	return s.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldOwner), client.ForceOwnership)
}
