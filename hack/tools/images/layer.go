package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// layers returns the layers of an image: the root file system if there is one, otherwise a small base
// and the program. The base is a layer of its own, because it is often the same in the next version.
func (s spec) layers(architecture string) ([]v1.Layer, error) {
	if root := s.roots[architecture]; root != "" {
		layer, err := tarball.LayerFromFile(root, tarball.WithMediaType(types.OCILayer))
		return []v1.Layer{layer}, err
	}
	base, err := newLayer(
		file{"etc/", 0o755, nil},
		file{"etc/group", 0o644, []byte(group)},
		file{"etc/passwd", 0o644, []byte(passwd)},
		file{"etc/ssl/", 0o755, nil},
		file{"etc/ssl/certs/", 0o755, nil},
		file{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
	)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(s.binaries[architecture])
	if err != nil {
		return nil, err
	}
	program, err := newLayer(file{s.program(), 0o755, content})
	return []v1.Layer{base, program}, err
}

// certificates returns Mozilla's root certificates in PEM, from a pinned module rather than from this
// machine.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot express the constraint
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// file is a file of a layer, or a folder if its name ends in a slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

// newLayer returns a layer with files. All have the same time, so that equal files make equal layers.
func newLayer(files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0),
		}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
