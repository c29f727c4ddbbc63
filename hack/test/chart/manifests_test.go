package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/hack/test/manifests"
)

// TestManifestsFitKubernetes renders the chart with many values, and checks the manifests by the types of the pinned and of
// the oldest supported release of Kubernetes.
func TestManifestsFitKubernetes(t *testing.T) {
	oldest := filepath.Join(t.TempDir(), "oldest")
	build := exec.Command("go", "build", "-o", oldest, ".")
	build.Dir = filepath.Join(root, "hack", "test", "manifests", "oldest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := valueFiles(t)
	if len(files) < 20 {
		t.Fatalf("there are only %d files of values", len(files))
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, []string{"--values", file})
			checked, err := manifests.Check(rendered)
			if err != nil {
				t.Errorf("pinned release: %v", err)
			}
			if checked < 30 {
				t.Errorf("only %d manifests were checked", checked)
			}
			check := exec.Command(oldest)
			check.Stdin = strings.NewReader(rendered)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("oldest release: %v: %s", err, out)
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
