package site

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// TestOtherSpec shows which changes of a SiteClass reconcile all of its Sites.
func TestOtherSpec(t *testing.T) {
	pool := func(class *v1alpha1.SiteClass) *v1alpha1.PostgresPool { return class.Spec.Storage.Postgres.Pool }
	tests := map[string]struct {
		change func(class *v1alpha1.SiteClass)
		want   bool
	}{
		"nothing":        {func(*v1alpha1.SiteClass) {}, false},
		"status":         {func(class *v1alpha1.SiteClass) { class.Status.ObservedGeneration = 7 }, false},
		"another object": {func(class *v1alpha1.SiteClass) { class.UID = "another" }, true},
		"drain":          {func(class *v1alpha1.SiteClass) { pool(class).Databases[0].Drain = true }, false},
		"capacity":       {func(class *v1alpha1.SiteClass) { pool(class).Databases[0].Capacity = ptr.To[int32](9) }, false},
		"secretRef":      {func(class *v1alpha1.SiteClass) { pool(class).Databases[0].SecretRef.Name = "b" }, true},
		"further database": {func(class *v1alpha1.SiteClass) {
			pool(class).Databases = append(pool(class).Databases, v1alpha1.PoolDatabase{Name: "b"})
		}, true},
		"drain of the template":    {func(class *v1alpha1.SiteClass) { pool(class).Template.Drain = []string{"auto-1"} }, false},
		"capacity of the template": {func(class *v1alpha1.SiteClass) { pool(class).Template.Capacity = ptr.To[int32](9) }, false},
		"region of the template":   {func(class *v1alpha1.SiteClass) { pool(class).Template.Region = "west" }, true},
		"no template":              {func(class *v1alpha1.SiteClass) { pool(class).Template = nil }, true},
		"limits": {func(class *v1alpha1.SiteClass) {
			class.Spec.Limits = v1alpha1.Limits{RequestsPerSecond: ptr.To[int32](9)}
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.SiteClass{Spec: v1alpha1.SiteClassSpec{Storage: &v1alpha1.ClassStorage{Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{
				Databases: []v1alpha1.PoolDatabase{{Name: "a", SecretRef: v1alpha1.DSNReference{Name: "a"}, Capacity: ptr.To[int32](5)}},
				Template:  &v1alpha1.PoolTemplate{Capacity: ptr.To[int32](5), Region: "east"},
			}}}}}
			after := before.DeepCopy()
			test.change(after)
			unchanged := after.DeepCopy()
			if got := otherSpec.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("selected: %t, want %t", got, test.want)
			}
			if diff := cmp.Diff(unchanged, after); diff != "" {
				t.Errorf("the object of the event was changed (-want +got):\n%s", diff)
			}
		})
	}
}
