package localpostgres

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits until no other process installs into dir, and locks dir until unlock is called.
func lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = file.Close() }, nil
}
