//go:build linux

package localnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const cgroupMount = "/sys/fs/cgroup"

// hierarchies are the mount points of cgroups: one of version 2, or several of version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroupMount, "*", "cgroup.procs"))
	for i, file := range found {
		found[i] = filepath.Dir(file)
	}
	return found, err
}

// prepareCgroups makes a cgroup in each hierarchy, moves this process to it, and mounts it at the
// mount point of the hierarchy. Processes in a cgroup namespace then see only this cgroup. The cgroups
// that they make are below it, separate from those of the machine.
func prepareCgroups() error {
	found, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range found {
		own := filepath.Join(hierarchy, os.Getenv(cgroupVariable))
		if err := os.Mkdir(own, 0o755); err != nil {
			return fmt.Errorf("make a cgroup for the node: %w", err)
		}
		if err := inheritCPUs(hierarchy, own); err != nil {
			return fmt.Errorf("make a cgroup for the node: %w", err)
		}
		if err := os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("enter the node's cgroup: %w", err)
		}
		if err := syscall.Mount(own, hierarchy, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind-mount the node's cgroup at %s: %w", hierarchy, err)
		}
	}
	return nil
}

// inheritCPUs copies the CPUs and memory nodes of the parent to a new cgroup. Version 1 leaves both
// empty, and such a cgroup can hold no process. It skips files that the parent does not have.
func inheritCPUs(parent, own string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(own, name), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the cgroups whose name matches a pattern. It skips cgroups in which processes
// run.
func removeCgroups(pattern string) error {
	var errs []error
	for _, depth := range []string{"", "*"} {
		found, err := filepath.Glob(filepath.Join(cgroupMount, depth, pattern))
		if err != nil {
			return err
		}
		for _, cgroup := range found {
			if err := removeCgroup(cgroup); !errors.Is(err, syscall.EBUSY) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// removeCgroup removes a cgroup after the cgroups below it. The kernel removes the files of a cgroup.
func removeCgroup(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}
