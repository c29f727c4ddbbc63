package provision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/controllers/apply"
)

func TestCovers(t *testing.T) {
	rendered := func() *appsv1.StatefulSet {
		objects := Render(readSite(t, "testdata/statefulset-all.in.yaml"), testOptions)
		set, ok := objects[len(objects)-1].(*appsv1.StatefulSet)
		if !ok {
			t.Fatalf("the last object is a %T", objects[len(objects)-1])
		}
		return set
	}
	config, err := apply.Config(rendered())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		"as rendered": {func(*appsv1.StatefulSet) {}, true},
		"with what a server adds": {func(s *appsv1.StatefulSet) {
			s.UID, s.Generation = types.UID("u"), 7
			s.Spec.RevisionHistoryLimit = ptr.To(int32(10))
			s.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
			s.Status.ReadyReplicas = 1
		}, true},
		"with a label of somebody's": {func(s *appsv1.StatefulSet) { s.Labels["team"] = "oak" }, true},
		"without a label of ours":    {func(s *appsv1.StatefulSet) { delete(s.Labels, "app.kubernetes.io/part-of") }, false},
		"scaled":                     {func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To(int32(0)) }, false},
		"another image":              {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "postgres" }, false},
		"one more container": {func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers, corev1.Container{})
		}, false},
		"no container":               {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers = nil }, false},
		"run as root":                {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.SecurityContext.RunAsUser = ptr.To(int64(0)) }, false},
		"without a security context": {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.SecurityContext = nil }, false},
		"an amount in another format": {func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("4000m")
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := rendered()
			tt.change(live)
			got, err := apply.Covers(live, config)
			if err != nil || got != tt.want {
				t.Errorf("got %t, %v, want %t", got, err, tt.want)
			}
		})
	}
}
