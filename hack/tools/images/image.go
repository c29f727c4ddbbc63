package main

import (
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const labelPrefix = "org.opencontainers.image."

// index returns an index with an image for each architecture.
func (s spec) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	architectures := slices.Sorted(maps.Keys(s.binaries))
	if len(architectures) == 0 {
		architectures = slices.Sorted(maps.Keys(s.roots))
	}
	for _, architecture := range architectures {
		image, err := s.image(architecture)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return mutate.Annotations(index, s.annotations()).(v1.ImageIndex), nil
}

func (s spec) image(architecture string) (v1.Image, error) {
	layers, err := s.layers(architecture)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, layer := range layers {
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: s.created}, CreatedBy: "hack/tools/images"},
		})
		if err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	file.Created = v1.Time{Time: s.created}
	file.Config = v1.Config{
		User:       s.user,
		Env:        s.environment,
		Entrypoint: s.entrypoint,
		Cmd:        s.command,
		WorkingDir: "/",
		Labels:     s.annotations(),
	}
	if s.binaries[architecture] != "" {
		file.Config.Entrypoint = []string{"/" + s.program()}
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, s.annotations()).(v1.Image), nil
}

// program returns the name of the binary inside the image: the last part of the name of the image,
// without the tag.
func (s spec) program() string {
	name, _, _ := strings.Cut(path.Base(s.name), ":")
	return name
}

func (s spec) annotations() map[string]string {
	annotations := map[string]string{labelPrefix + "created": s.created.Format("2006-01-02T15:04:05Z")}
	for key, value := range s.labels {
		annotations[labelPrefix+key] = value
	}
	return annotations
}
