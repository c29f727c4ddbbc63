package site

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

func TestDecideProvision(t *testing.T) {
	site := func(engine v1alpha1.PostgresEngine, version string) *v1alpha1.Site {
		return &v1alpha1.Site{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clinic", Name: "oak"},
			Spec: v1alpha1.SiteSpec{Storage: v1alpha1.Storage{Postgres: &v1alpha1.PostgresStorage{
				Provisioned: &v1alpha1.ProvisionedPostgres{Engine: engine, Version: version},
			}}},
		}
	}
	volume := func(key, major string) provision.Objects {
		meta := metav1.ObjectMeta{}
		if key != "" {
			meta.Labels = map[string]string{v1alpha1.SiteKeyLabel: key}
		}
		if major != "" {
			meta.Annotations = map[string]string{provision.MajorAnnotation: major}
		}
		return provision.Objects{Volume: &corev1.PersistentVolumeClaim{ObjectMeta: meta}}
	}
	leaving := volume("key", "17")
	leaving.Volume.DeletionTimestamp = &metav1.Time{}
	cluster := provision.Objects{Cluster: &unstructured.Unstructured{Object: map[string]any{}}}
	tests := map[string]struct {
		site    *v1alpha1.Site
		objects provision.Objects
		reason  string // empty: go on
		message string
	}{
		"nothing there":                {site(v1alpha1.EngineStatefulSet, "17"), provision.Objects{}, "", ""},
		"its own data":                 {site(v1alpha1.EngineStatefulSet, "17"), volume("key", "17"), "", ""},
		"another minor version":        {site(v1alpha1.EngineStatefulSet, "17.6"), volume("key", "17"), "", ""},
		"a volume that a person made":  {site(v1alpha1.EngineStatefulSet, "17"), volume("", ""), "", ""},
		"a newer major version":        {site(v1alpha1.EngineStatefulSet, "18.1"), volume("key", "17"), v1alpha1.ReasonMajorUpgrade, "written by Postgres 17, and 18 cannot"},
		"an older major version":       {site(v1alpha1.EngineStatefulSet, "16"), volume("key", "17"), v1alpha1.ReasonMajorUpgrade, "move the Site to a new database"},
		"data of another key":          {site(v1alpha1.EngineStatefulSet, "17"), volume("other", "17"), v1alpha1.ReasonForeignRecords, "another site key"},
		"data that goes":               {site(v1alpha1.EngineStatefulSet, "17"), leaving, v1alpha1.ReasonProvisioning, "being deleted"},
		"data of the other engine":     {site(v1alpha1.EngineStatefulSet, "17"), cluster, v1alpha1.ReasonForeignRecords, "engine CloudNativePG"},
		"data of the other other":      {site(v1alpha1.EngineCloudNativePG, "17"), volume("key", "17"), v1alpha1.ReasonForeignRecords, "engine StatefulSet"},
		"a Cluster that a person made": {site(v1alpha1.EngineCloudNativePG, "17"), cluster, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got verdict
			if bad := decideProvision(tt.site, "key", tt.objects); bad != nil {
				got = *bad
			}
			if got.reason != tt.reason || !strings.Contains(got.message, tt.message) || tt.reason != "" && got.status != metav1.ConditionFalse {
				t.Errorf("got %+v, want %s with %q", got, tt.reason, tt.message)
			}
		})
	}
}
