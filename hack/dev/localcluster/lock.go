package localcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// ErrInUse is returned by Start for a folder that a live control plane holds.
var ErrInUse = errors.New("in use by another control plane")

// dirLock keeps two control planes out of one folder. The kernel lets go of it when its
// holder dies, however that happens.
type dirLock struct{ file *os.File }

func lockDir(path string) (*dirLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the control plane's folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = writeHolder(file)
	}
	if err == nil {
		return &dirLock{file}, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w (process %s): stop it or choose another folder", ErrInUse, readHolder(file))
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
}

// writeHolder leaves the process id for the error message of whoever comes second.
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

func (l *dirLock) release() error { return l.file.Close() }
