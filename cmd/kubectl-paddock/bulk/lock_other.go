//go:build !windows

package bulk

import (
	"errors"
	"os"
	"syscall"
)

// openLock opens the file of a lock, and locks it if the file system has locks. Errors: errLocked.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil || hasNoLocks(err):
		return file, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errLocked
	}
	return nil, errors.Join(err, file.Close())
}

// hasNoLocks reports whether an error of flock(2) means that the file system has no locks, as some network file
// systems.
func hasNoLocks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}
