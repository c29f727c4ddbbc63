// Package locals3 runs Versity Gateway, a server of the S3 API, on this machine.
package locals3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Bucket is the bucket of a server.
	Bucket = "backups"
	// AccessKeyID is the name of the credentials of a server.
	AccessKeyID = "paddock-test"
	// SecretAccessKey is the secret of the credentials of a server.
	SecretAccessKey = "paddock-test-secret"
)

// Server is a running server.
type Server struct {
	// Endpoint is the URL of the S3 API, served over plain HTTP.
	Endpoint string
	// Objects is the directory with the objects of the bucket, as files.
	Objects string
	process *exec.Cmd
}

// Environment returns the environment variables with the credentials, as NAME=value.
func Environment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + SecretAccessKey}
}

// Start starts bin/versitygw at a free port with its state in dir, and returns when it serves.
// Output goes to out.
func Start(ctx context.Context, bin, dir string, out io.Writer) (*Server, error) {
	return StartAt(ctx, "127.0.0.1", bin, dir, out)
}

// StartAt does the same as Start at a given IP address of this machine.
func StartAt(ctx context.Context, ip, bin, dir string, out io.Writer) (*Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &Server{Endpoint: "http://" + address, Objects: filepath.Join(dir, "objects", Bucket)}
	s.process = exec.Command(filepath.Join(bin, "versitygw"), "-address", address, "-directory", dir, "-bucket", Bucket)
	s.process.Env = append(os.Environ(), Environment()...)
	s.process.Stdout, s.process.Stderr = out, out
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start versitygw: %w: run `make s3-tools`", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/health", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for versitygw: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends the server. Its files remain.
func (s *Server) Stop() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	_ = s.process.Wait() // it was killed
	return nil
}
