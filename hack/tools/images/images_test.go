package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// pack packs a program of some content for two architectures and returns the archive.
func pack(t *testing.T, program string) []byte {
	t.Helper()
	dir := t.TempDir()
	binary, out := filepath.Join(dir, "binary"), filepath.Join(dir, "out.tar")
	if err := os.WriteFile(binary, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run([]string{
		"-out", out, "-name", "ghcr.io/paddock-health/apiserver:1.0.0", "-created", "1700000000",
		"-binary", "amd64=" + binary, "-binary", "arm64=" + binary, "-label", "title=API server", "-label", "version=1.0.0",
	})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestSameInputsMakeTheSameArchive(t *testing.T) {
	first := pack(t, "one")
	if !bytes.Equal(first, pack(t, "one")) {
		t.Error("the same program was packed into two different archives")
	}
	if bytes.Equal(first, pack(t, "two")) {
		t.Error("two programs were packed into the same archive")
	}
}

func TestImage(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec{
		name: "ghcr.io/paddock-health/controller:1.0.0", user: "65532:65532", created: time.Unix(1, 0).UTC(),
		binaries: map[string]string{"amd64": binary, "arm64": binary}, labels: map[string]string{"title": "Controller"},
	}
	index, err := s.index()
	if err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(t.TempDir(), index)
	if err != nil {
		t.Fatal(err)
	}
	written, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written); err != nil {
		t.Error(err)
	}
	image, err := s.image("arm64")
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Architecture != "arm64" || file.OS != "linux" {
		t.Errorf("platform: %s/%s, want linux/arm64", file.OS, file.Architecture)
	}
	if file.Config.User != "65532:65532" {
		t.Errorf("user: %q, want one that is not root", file.Config.User)
	}
	if len(file.Config.Entrypoint) != 1 || file.Config.Entrypoint[0] != "/controller" {
		t.Errorf("entry point: %q, want /controller", file.Config.Entrypoint)
	}
	if title := file.Config.Labels["org.opencontainers.image.title"]; title != "Controller" {
		t.Errorf("title: %q, want Controller", title)
	}
	if !bytes.Contains(certificates(), []byte("BEGIN CERTIFICATE")) {
		t.Error("there are no certificate authorities")
	}
}
