package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- New.\n\n## [0.1.1] - 2026-01-02\n\n## [0.1.0] - 2026-01-01\n\n- First.\n\n[0.1.0]: https://example.org\n"
	tests := map[string]struct{ version, want, failure string }{
		"a release":        {version: "0.1.0", want: "- First."},
		"a pre-release":    {version: "0.2.0-rc.1", want: "### Added\n\n- New."},
		"an empty section": {version: "0.1.1", failure: "is empty"},
		"no section":       {version: "0.2.0", failure: "rename [Unreleased]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := changes(changelog, test.version)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Fatalf("got %q and error %v, want an error with %q", got, err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("section (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSBOMListsEveryModule compares the bill of materials of this test's program with `go version -m`.
func TestSBOMListsEveryModule(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *billOfMaterials(info, "v1.2.3").Components {
		got = append(got, c.Name+" "+c.Version)
	}
	out, err := exec.Command("go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "dep" {
			want = append(want, fields[1]+" "+fields[2])
		}
	}
	if len(want) < 50 {
		t.Fatalf("go version -m lists only %d modules", len(want))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-go version +bill of materials):\n%s", diff)
	}
}

func TestPackIsReproducible(t *testing.T) {
	members := []member{{"LICENSE", 0o644, []byte("text")}, {"program", 0o755, []byte("code")}}
	first, err := pack(time.Unix(1, 0), members...)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(time.Unix(1, 0), members...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same members were packed into different archives")
	}
	got, err := membersOf(first)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[1].name != "program" || string(got[1].content) != "code" {
		t.Errorf("the archive has %v", got)
	}
}

func TestChecksums(t *testing.T) {
	tests := map[string]struct {
		change  func(dir string) error
		failure string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"a signature": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, checksumsFile+bundleSuffix), nil, 0o600)
		}, ""},
		"a changed file": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("other"), 0o600) }, "a is missing or has another checksum"},
		"a missing file": {func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }, "a is missing or has another checksum"},
		"a new file":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o600) }, "b is not listed in checksums.txt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := writeChecksums(dir); err != nil {
				t.Fatal(err)
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			err := verifyChecksums(dir)
			if got := test.failure; (got == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), got) {
				t.Errorf("got error %v, want %q", err, got)
			}
		})
	}
}

func TestValuesNameTheImages(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	text := "image:\n  # -- Registry.\n  registry: ghcr.io\n  apiserver:\n    repository: a/apiserver\n    # -- Digest.\n    digest: \"\"\nlast: 1\n"
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := assembly{registry: "localhost:5000"}
	if err := a.setValues(values, []artifact{{Repository: "apiserver", Digest: "sha256:1"}}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(values)
	if err != nil {
		t.Fatal(err)
	}
	want := "image:\n  # -- Registry.\n  registry: \"localhost:5000\"\n  apiserver:\n    repository: \"apiserver\"\n    # -- Digest.\n    digest: \"sha256:1\"\nlast: 1\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("values.yaml (-want +got):\n%s", diff)
	}
	if err := a.setValues(values, []artifact{{Repository: "other"}}); err == nil {
		t.Error("an image that the values do not have was accepted")
	}
}
