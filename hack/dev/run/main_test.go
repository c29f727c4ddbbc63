package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/dev/run/preflight"
)

// TestSecondRun holds that a run in the folder of a running one is refused and changes nothing there.
func TestSecondRun(t *testing.T) {
	dir := t.TempDir()
	settings := preflight.Settings{Dir: dir, Storage: "cluster", Data: "none"}
	first, err := settings.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Release() }()
	for _, name := range []string{"url", "token", "kubeconfig"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("of the first run"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, dir)
	err = run(t.Context(), options{Settings: settings, bin: filepath.Join("..", "..", "..", "bin"), source: filepath.Join("..", "..", "..")})
	if err == nil || !strings.Contains(err.Error(), "already running in "+dir) {
		t.Errorf("error: got %v, want: already running", err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("files of the first run (-before +after):\n%s", diff)
	}
}

// contents returns the contents of the files in a folder by their names; those of folders are empty.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		all[entry.Name()] = ""
		if entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}
