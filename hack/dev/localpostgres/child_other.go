//go:build !linux

package localpostgres

import "syscall"

// dieWithParent does nothing: only Linux ends children with their parent.
func dieWithParent(*syscall.SysProcAttr) {}

// letThrough does nothing: elsewhere the folders must be open to the server's user.
func letThrough(*syscall.SysProcAttr) {}
