package imports

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path"
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

// TestArchitectureNamesFolders fails if the table of folders in ARCHITECTURE.md leaves out a package. A row names
// the folders of its first cell, in which …/name is next to or below the first one, and those below them whose
// name is elsewhere in the row. "and below" stands for all folders below.
func TestArchitectureNamesFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([^`]+)`")
	named, below := map[string]bool{}, []string{}
	for row := range strings.Lines(string(text)) {
		cell, rest, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		first := ""
		for _, name := range names.FindAllStringSubmatch(cell, -1) {
			first = cmp.Or(first, name[1])
			if last, ok := strings.CutPrefix(name[1], "…/"); ok {
				named[path.Join(first, last)], named[path.Join(path.Dir(first), last)] = true, true
			}
			named[name[1]] = true
		}
		for _, name := range names.FindAllStringSubmatch(rest, -1) {
			named[path.Join(first, name[1])] = true
		}
		if strings.Contains(cell, "and below") {
			below = append(below, first+"/")
		}
	}
	isNamed := func(folder string) bool {
		return named[folder] || slices.ContainsFunc(below, func(above string) bool { return strings.HasPrefix(folder, above) })
	}
	for name := range list(t, "{{.ImportPath}}") {
		folder := strings.TrimPrefix(name, module+"/")
		parts := strings.Split(folder, "/")
		isTool := parts[0] == "hack" && len(parts) > 1 && (parts[1] == "dev" || parts[1] == "test") && len(parts) == 3
		if (parts[0] == "apiserver" || parts[0] == "controllers" || isTool) && !isNamed(folder) {
			t.Errorf("no row of the table of folders has %s", folder)
		}
	}
}

// TestVersions fails if docs/versions.md names other releases of Kubernetes than those that the chart accepts, that
// manifests are checked with, and that tests run with.
func TestVersions(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	find := func(file, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s has nothing like %s", file, pattern)
		}
		return string(match[1])
	}
	oldest := find("charts/paddock/Chart.yaml", `kubeVersion: ">=1\.(\d+)\.`)
	newest := find("hack/tools/kubernetes/go.mod", `k8s\.io/kubernetes v1\.(\d+)\.`)
	for what, got := range map[string]string{
		"the oldest release in docs/versions.md":         find("docs/versions.md", `\| Kubernetes \| 1\.(\d+) and later`),
		"the release with which manifests are checked":   find("hack/test/manifests/oldest/go.mod", `k8s\.io/kubernetes v1\.(\d+)\.`),
		"the types that docs/versions.md says is tested": find("docs/versions.md", `OpenAPI document of 1\.(\d+)`),
		"the oldest release in the guide":                find("docs/guides/install.md", `requires Kubernetes 1\.(\d+) or later`),
	} {
		if got != oldest {
			t.Errorf("%s is 1.%s, the chart accepts 1.%s and later", what, got, oldest)
		}
	}
	former := find("hack/tools/release/release.mk", `FORMER_VERSION +:= (\S+)`)
	commit := find("docs/versions.md", `\| `+regexp.QuoteMeta(former)+` \| .(\w+)`)
	if built := find("hack/tools/release/release.mk", `FORMER_COMMIT +\?= (\w+)`); !strings.HasPrefix(built, commit) {
		t.Errorf("docs/versions.md says that release %s is commit %s, tests build %s", former, commit, built)
	}
	if got := find("docs/versions.md", `and later; the chart refuses older ones .* \| 1\.(\d+);`); got != newest {
		t.Errorf("docs/versions.md says that 1.%s is tested, it is 1.%s", got, newest)
	}
}
