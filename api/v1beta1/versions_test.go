package v1beta1_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1beta1"
)

// A custom resource definition without a conversion webhook loses each field that one version lacks.
func TestVersionsHaveTheSameSchema(t *testing.T) {
	for _, plural := range []string{"sites", "siteclasses", "webhooks", "webhookevents"} {
		t.Run(plural, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../config/crd/bases", "paddock.health_"+plural+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var definition struct {
				Spec struct {
					Conversion any
					Versions   []map[string]any
				}
			}
			if err := yaml.Unmarshal(text, &definition); err != nil {
				t.Fatal(err)
			}
			versions := definition.Spec.Versions
			if len(versions) != 2 || definition.Spec.Conversion != nil {
				t.Fatalf("%d versions, conversion %v; expected 2 without a conversion", len(versions), definition.Spec.Conversion)
			}
			for i, want := range []struct {
				name   string
				stored bool
			}{{"v1alpha1", true}, {v1beta1.GroupVersion.Version, false}} {
				if got := versions[i]; got["name"] != want.name || got["storage"] != want.stored || got["served"] != true {
					t.Errorf("version %v: storage %v, served %v; expected %s with storage %v, served", got["name"], got["storage"], got["served"], want.name, want.stored)
				}
				delete(versions[i], "name")
				delete(versions[i], "storage")
			}
			if diff := cmp.Diff(versions[0], versions[1]); diff != "" {
				t.Errorf("the versions differ (-v1alpha1 +v1beta1):\n%s", diff)
			}
		})
	}
}
