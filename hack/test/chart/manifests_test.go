package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/hack/test/manifests"
)

// TestManifestsFitKubernetes renders the chart with many values, and checks the manifests by the OpenAPI documents of the
// pinned and of the oldest supported release of Kubernetes.
func TestManifestsFitKubernetes(t *testing.T) {
	pinned, err := manifests.Pinned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	oldest, err := manifests.Oldest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(string) (int, error){
		"types of the pinned release": manifests.CheckTypes, "schema of the pinned release": pinned.Check, "schema of the oldest release": oldest.Check,
	}
	files := valueFiles(t)
	if len(files) < 20 {
		t.Fatalf("there are only %d files of values", len(files))
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, []string{"--values", file})
			for by, check := range checks {
				checked, err := check(rendered)
				if err != nil {
					t.Errorf("%s: %v", by, err)
				}
				if checked < 30 {
					t.Errorf("%s: only %d manifests were checked", by, checked)
				}
			}
		})
	}
}

// valueFiles are the files of charts/paddock/ci, and one for each member of testdata/values.yaml.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	found, err := filepath.Glob(filepath.Join(chartDir, "ci", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		files[filepath.Base(file)] = file
	}
	text, err := os.ReadFile(filepath.Join("testdata", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, value := range all {
		values, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(files[name], values, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
