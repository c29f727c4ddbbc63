package imports

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentsNameFiles fails if ARCHITECTURE.md, CONTRIBUTING.md or the README of the Postgres engine
// names a file that does not exist.
// A name without a folder, or with the last ones only, stands for any file whose path ends so.
func TestDocumentsNameFiles(t *testing.T) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root := strings.TrimSpace(string(output))
	var paths []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && slices.Contains([]string{".git", ".local", "bin", "node_modules"}, entry.Name()) {
			return cmp.Or(err, fs.SkipDir)
		}
		paths = append(paths, filepath.ToSlash(path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-zA-Z0-9_./-]+\\.(?:go|json|md|yaml))`")
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "apiserver/store/postgres/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		found := names.FindAllStringSubmatch(string(text), -1)
		if len(found) < 2 {
			t.Errorf("%s names only %d files", document, len(found))
		}
		for _, name := range found {
			if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/"+name[1]) }) {
				t.Errorf("%s names %s, which does not exist", document, name[1])
			}
		}
	}
}
