// Package localregistry runs distribution's OCI registry on this machine, and reads programs from
// images in it.
package localregistry

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Registry is a running registry. It stores everything below one folder.
type Registry struct {
	// Address is host and port, served over plain HTTP.
	Address string
	process *exec.Cmd
}

const configuration = `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
  maintenance: {uploadpurging: {enabled: false}}
http: {addr: %q}
`

// Start starts bin/registry at a free port with its state in dir, and returns when it serves.
// Output goes to out.
func Start(ctx context.Context, bin, dir string, out io.Writer) (*Registry, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	return StartAt(ctx, address, bin, dir, out)
}

// StartAt does the same as Start at a given address.
func StartAt(ctx context.Context, address, bin, dir string, out io.Writer) (*Registry, error) {
	r := &Registry{Address: address}
	file := filepath.Join(dir, "registry.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, filepath.Join(dir, "registry"), r.Address), 0o600); err != nil {
		return nil, err
	}
	r.process = exec.Command(filepath.Join(bin, "registry"), "serve", file)
	r.process.Stdout, r.process.Stderr = out, out
	r.process.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := r.process.Start(); err != nil {
		return nil, fmt.Errorf("start the registry: %w: run `make release-tools`", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		response, err := r.get(ctx, "/v2/", "")
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, response.Body.Close()
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the registry: %w", err), r.Stop())
	}
	return r, nil
}

// Stop ends the registry. Its files remain.
func (r *Registry) Stop() error {
	if err := r.process.Process.Kill(); err != nil {
		return err
	}
	_ = r.process.Wait() // it was killed
	return nil
}

func (r *Registry) get(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Address+path, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET %s: status %s", path, response.Status), response.Body.Close())
	}
	return response, nil
}

// manifest has the members of an image index and of an image manifest that are needed here.
type manifest struct {
	Manifests []struct {
		Digest   string
		Platform struct{ OS, Architecture string }
	}
	Layers []struct{ Digest string }
}

const manifestTypes = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"

func (r *Registry) manifest(ctx context.Context, repository, digest string) (*manifest, error) {
	response, err := r.get(ctx, "/v2/"+repository+"/manifests/"+digest, manifestTypes)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	m := &manifest{}
	return m, json.NewDecoder(response.Body).Decode(m)
}

// PullProgram writes the program of the image for this machine to a file. digest is that of the image
// index. The program is in the last layer, and has the name of the last part of repository.
func (r *Registry) PullProgram(ctx context.Context, repository, digest, file string) error {
	index, err := r.manifest(ctx, repository, digest)
	if err != nil {
		return err
	}
	for _, described := range index.Manifests {
		if described.Platform.OS != runtime.GOOS || described.Platform.Architecture != runtime.GOARCH {
			continue
		}
		image, err := r.manifest(ctx, repository, described.Digest)
		if err != nil {
			return err
		}
		last := image.Layers[len(image.Layers)-1]
		layer, err := r.get(ctx, "/v2/"+repository+"/blobs/"+last.Digest, "")
		if err != nil {
			return err
		}
		defer layer.Body.Close()
		return extractProgram(layer.Body, repository[strings.LastIndexByte(repository, '/')+1:], file)
	}
	return fmt.Errorf("%s@%s has no image for %s/%s", repository, digest, runtime.GOOS, runtime.GOARCH)
}

func extractProgram(layer io.Reader, program, file string) error {
	uncompressed, err := gzip.NewReader(layer)
	if err != nil {
		return err
	}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if err != nil {
			return fmt.Errorf("find %s in the image: %w", program, err)
		}
		if header.Name != program {
			continue
		}
		target, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(target, reader)
		return errors.Join(err, target.Close())
	}
}
