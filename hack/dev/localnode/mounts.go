//go:build linux

package localnode

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// privateDirs get an empty file system in the node's mount namespace: container runtimes keep
// sockets, locks, network namespaces, results and links to logs there.
var privateDirs = []string{"/run", "/var/lib", "/var/log"}

// kernelSettings are the settings that the kubelet sets for the whole machine. In the node's mount
// namespace, files with these values cover the settings. The kubelet therefore changes nothing, and
// the machine keeps its settings.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// prepareMounts makes what the node's programs write outside the node's folder private to the
// mount namespace.
func prepareMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts from spreading to the machine: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range privateDirs {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return coverKernelSettings()
}

// mountBounded mounts a file system in memory that can hold size bytes.
func mountBounded(dir string, size int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("mode=755,size=%d", size)); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

func coverKernelSettings() error {
	for name, value := range kernelSettings {
		cover := filepath.Join("/run/kernel", name)
		if err := os.MkdirAll(filepath.Dir(cover), 0o755); err != nil {
			return fmt.Errorf("make the file that replaces kernel setting %s: %w", name, err)
		}
		if err := os.WriteFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("make the file that replaces kernel setting %s: %w", name, err)
		}
		if err := syscall.Mount(cover, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind-mount a file over kernel setting %s: %w", name, err)
		}
	}
	return nil
}
