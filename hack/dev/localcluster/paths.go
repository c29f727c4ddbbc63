package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// paths names everything below Options.Dir.
type paths string

func (p paths) root() string              { return string(p) }
func (p paths) lock() string              { return filepath.Join(string(p), "lock") }
func (p paths) ports() string             { return filepath.Join(string(p), "ports.json") }
func (p paths) kubeconfig() string        { return filepath.Join(string(p), "kubeconfig") }
func (p paths) auditLog() string          { return filepath.Join(string(p), "audit.log") }
func (p paths) auditPolicy() string       { return filepath.Join(string(p), "audit-policy.yaml") }
func (p paths) pki() string               { return filepath.Join(string(p), "pki") }
func (p paths) etcdData() string          { return filepath.Join(string(p), "etcd") }
func (p paths) flexVolumes() string       { return filepath.Join(string(p), "flexvolumes") }
func (p paths) log(name string) string    { return filepath.Join(string(p), name+".log") }
func (p paths) child(name string) string  { return filepath.Join(string(p), name+".pid.json") }
func (p paths) config(name string) string { return filepath.Join(string(p), name+".kubeconfig") }

// create makes the folders. They hold private keys, hence the mode.
func (p paths) create() error {
	for _, dir := range []string{p.root(), p.pki(), p.etcdData()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the control plane's folder: %w", err)
		}
	}
	return nil
}

// replaceFile writes a file so that a crash leaves either the old or the new content.
func replaceFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
