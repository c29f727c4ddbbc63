package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// collectImages copies the images to the release, and writes the bill of materials of each program
// in them.
func (a assembly) collectImages() error {
	c := contents{Version: a.version, Revision: a.revision}
	for _, name := range imageNames {
		file := name + ".tar"
		if err := copyFile(filepath.Join(a.out, file), filepath.Join(a.images, file)); err != nil {
			return err
		}
		described, err := a.describeImage(name, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		c.Artifacts = append(c.Artifacts, *described)
	}
	return writeJSON(filepath.Join(a.out, contentsFile), c)
}

func (a assembly) describeImage(name, file string) (*artifact, error) {
	var described *artifact
	err := withArchive(filepath.Join(a.out, file), func(index v1.ImageIndex) error {
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		described = &artifact{Repository: name, File: file, Digest: digest.String()}
		for _, image := range manifest.Manifests {
			p := platform{Platform: image.Platform.String(), Digest: image.Digest.String()}
			p.SBOM = name + "_" + image.Platform.OS + "_" + image.Platform.Architecture + sbomSuffix
			program := filepath.Join(a.programs, image.Platform.OS+"-"+image.Platform.Architecture, name)
			if err := a.writeSBOM(program, p.SBOM); err != nil {
				return err
			}
			described.Platforms = append(described.Platforms, p)
		}
		return nil
	})
	return described, err
}

// withArchive calls use with the index in an OCI archive, whose files exist until use returns.
func withArchive(archive string, use func(v1.ImageIndex) error) error {
	dir, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpack(archive, dir); err != nil {
		return err
	}
	path, err := layout.FromPath(dir)
	if err != nil {
		return err
	}
	root, err := path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%s has %d images, want one", archive, len(manifest.Manifests))
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	return use(index)
}

// unpack writes the regular files of a tar archive below dir.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name := path.Clean(header.Name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		target, err := root.Create(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(target, reader)
		if err := errors.Join(err, target.Close()); err != nil {
			return err
		}
	}
}

func copyFile(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
