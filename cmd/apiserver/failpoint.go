//go:build failpoints

package main

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// failpoint kills the process by SIGKILL after the nth time that a write completes the step named
// in PADDOCK_FAILPOINT. n is in PADDOCK_FAILPOINT_COUNT and is 1 by default.
var failpoint = func() func(string) {
	at := os.Getenv("PADDOCK_FAILPOINT")
	count, err := strconv.ParseInt(os.Getenv("PADDOCK_FAILPOINT_COUNT"), 10, 64)
	if err != nil {
		count = 1
	}
	var reached atomic.Int64
	return func(step string) {
		if step == at && reached.Add(1) == count {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
}()
