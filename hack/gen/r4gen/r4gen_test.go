package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

// TestTablesAreCurrent generates the tables once more and compares them with those
// that are committed.
func TestTablesAreCurrent(t *testing.T) {
	const root = "../../.."
	path, err := examples.Fetch(t.Context(), filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "apiserver/fhir/r4")
	d, err := load(path, folder)
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not up to date: run go generate ./apiserver/fhir/r4\n%s", name, diff)
		}
	}
	committed, err := filepath.Glob(filepath.Join(folder, "zz_generated_*.go"))
	if err != nil || len(committed) != len(files)-1 { // the guide is the other one
		t.Errorf("%d files are generated, %v are there (%v)", len(files), committed, err)
	}
}
