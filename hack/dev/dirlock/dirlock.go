// Package dirlock gives a folder to one process at a time. It uses only the standard library, so that
// programs with it are built fast.
package dirlock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// HeldError is the error of Take for a lock that is held, by another process or by this one.
type HeldError struct {
	// Process is the id of the holder, "unknown" if it has not written its id yet.
	Process string
}

func (e *HeldError) Error() string { return fmt.Sprintf("in use by process %s", e.Process) }

// Lock is a lock that this process holds. The kernel releases it when the process ends, also by
// SIGKILL.
type Lock struct{ file *os.File }

// Take takes the lock with the given file, which it creates if needed, and writes the id of this
// process to it. It does not wait. Errors: *HeldError.
func Take(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = writeHolder(file)
	}
	if err == nil {
		return &Lock{file}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &HeldError{Process: readHolder(file)}
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
}

func writeHolder(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return err
}

func readHolder(file *os.File) string {
	holder, err := io.ReadAll(file)
	if err != nil || len(holder) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(holder))
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }
