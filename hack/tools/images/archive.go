package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an OCI image layout with the index to the tar file out. name is the reference
// under which containerd imports it.
func writeArchive(out, name string, index v1.ImageIndex) error {
	dir, err := os.MkdirTemp(filepath.Dir(out), ".layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	_, tag, _ := strings.Cut(filepath.Base(name), ":")
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": tag,
	})); err != nil {
		return err
	}
	next := out + ".next"
	if err := archiveDir(next, dir); err != nil {
		return err
	}
	return os.Rename(next, out)
}

// archiveDir writes the files of dir to a tar file. They are in the order of their names and have
// equal times, so that equal folders make equal archives.
func archiveDir(out, dir string) (err error) {
	target, err := os.Create(out)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(target)
	defer func() { err = errors.Join(err, writer.Close(), target.Close()) }()
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name) + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
		if !entry.IsDir() {
			header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeReg, filepath.ToSlash(name), 0o644, info.Size()
		}
		if err := writer.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(writer, content)
		return err
	})
}
