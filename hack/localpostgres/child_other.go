//go:build !linux

package localpostgres

import "syscall"

// dieWithParent does nothing: only Linux ends children with their parent.
func dieWithParent(*syscall.SysProcAttr) {}
