//go:build !windows

package bulk

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestFileSystemWithoutLocks checks which errors of flock(2) mean that the file system of a directory has no
// locks. NFS returns ENOLCK if its server or the machine has no lock service.
func TestFileSystemWithoutLocks(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOLCK: true, syscall.ENOSYS: true, syscall.EOPNOTSUPP: true,
		syscall.EWOULDBLOCK: false, syscall.EBADF: false, syscall.EINTR: false, os.ErrClosed: false,
	} {
		if got := hasNoLocks(fmt.Errorf("lock: %w", err)); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
