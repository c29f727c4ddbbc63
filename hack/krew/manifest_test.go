// Package krew has the template of the manifest with which krew installs kubectl-paddock.
package krew

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// manifest has the fields of a krew Plugin. Unknown fields are an error.
type manifest struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []struct {
			Selector         struct{ MatchLabels map[string]string }
			URI, SHA256, Bin string
		}
	}
}

func TestManifest(t *testing.T) {
	parsed, err := template.ParseFiles("paddock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checksum := func(archive string) string {
		sum := sha256.Sum256([]byte(archive))
		return hex.EncodeToString(sum[:])
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, map[string]any{"Version": "v1.2.3", "Checksum": checksum}); err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(text.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "paddock" || m.Spec.Version != "v1.2.3" {
		t.Errorf("%s %s %s %s", m.APIVersion, m.Kind, m.Metadata.Name, m.Spec.Version)
	}
	// krew rejects longer ones.
	if short := m.Spec.ShortDescription; len(short) > 50 || strings.HasSuffix(short, ".") {
		t.Errorf("the short description %q has %d characters, want at most 50 and no full stop", short, len(short))
	}
	address := regexp.MustCompile(`^https://github\.com/paddock-health/paddock/releases/download/v1\.2\.3/(kubectl-paddock_(\w+)_(\w+)\.tar\.gz)$`)
	seen := map[string]bool{}
	for _, platform := range m.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		parts := address.FindStringSubmatch(platform.URI)
		if parts == nil || parts[2] != labels["os"] || parts[3] != labels["arch"] {
			t.Errorf("the platform %v has the archive %s", labels, platform.URI)
			continue
		}
		if platform.SHA256 != checksum(parts[1]) {
			t.Errorf("%s has the checksum of another archive", parts[1])
		}
		want := "kubectl-paddock"
		if labels["os"] == "windows" {
			want += ".exe"
		}
		if platform.Bin != want {
			t.Errorf("%v runs %s, want %s", labels, platform.Bin, want)
		}
		seen[fmt.Sprint(labels)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d platforms, want 6 different ones", len(seen))
	}
}
