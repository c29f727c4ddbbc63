package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

// ociArtifact is a manifest with one layer that is not an image: the chart, or a bundle with a signed
// statement.
type ociArtifact struct {
	config, layer v1.Layer
	manifest      v1.Manifest
}

func newOCIArtifact(config, layer v1.Layer, manifest v1.Manifest) (*ociArtifact, error) {
	manifest.SchemaVersion, manifest.MediaType = 2, types.OCIManifestSchema1
	describe := func(layer v1.Layer) (v1.Descriptor, error) {
		digest, err := layer.Digest()
		if err != nil {
			return v1.Descriptor{}, err
		}
		size, err := layer.Size()
		if err != nil {
			return v1.Descriptor{}, err
		}
		mediaType, err := layer.MediaType()
		return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, err
	}
	var err error
	if manifest.Config, err = describe(config); err != nil {
		return nil, err
	}
	described, err := describe(layer)
	if err != nil {
		return nil, err
	}
	manifest.Layers = []v1.Descriptor{described}
	return &ociArtifact{config, layer, manifest}, nil
}

// RawManifest and MediaType implement remote.Taggable.
func (a *ociArtifact) RawManifest() ([]byte, error)        { return json.Marshal(a.manifest) }
func (a *ociArtifact) MediaType() (types.MediaType, error) { return a.manifest.MediaType, nil }

func (a *ociArtifact) digest() (v1.Hash, error) {
	raw, err := a.RawManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	return digest, err
}

// chartArtifact returns the artifact of a packaged chart as Helm pushes it:
// https://helm.sh/docs/topics/registries.
func chartArtifact(archive []byte, revision string) (*ociArtifact, error) {
	members, err := membersOf(archive)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.name != "paddock/Chart.yaml" {
			continue
		}
		var metadata map[string]any
		if err := yaml.Unmarshal(m.content, &metadata); err != nil {
			return nil, err
		}
		config, err := json.Marshal(metadata)
		if err != nil {
			return nil, err
		}
		return newOCIArtifact(
			static.NewLayer(config, "application/vnd.cncf.helm.config.v1+json"),
			static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
			v1.Manifest{Annotations: map[string]string{
				"org.opencontainers.image.title":       fmt.Sprint(metadata["name"]),
				"org.opencontainers.image.version":     fmt.Sprint(metadata["version"]),
				"org.opencontainers.image.description": fmt.Sprint(metadata["description"]),
				"org.opencontainers.image.url":         fmt.Sprint(metadata["home"]),
				"org.opencontainers.image.source":      repositoryURL,
				"org.opencontainers.image.revision":    revision,
			}},
		)
	}
	return nil, fmt.Errorf("the archive has no paddock/Chart.yaml among %d files", len(members))
}

// tagOf returns the tag of a version. Tags cannot contain a plus sign; like Helm, it replaces a plus
// sign by an underscore.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }
