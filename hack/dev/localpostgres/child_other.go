//go:build !linux

package localpostgres

import "syscall"

// dieWithParent does nothing: only Linux can end children with their parent.
func dieWithParent(*syscall.SysProcAttr) {}

// letThrough does nothing. Only on Linux can the server pass folders that its user may not enter. On
// other systems that user must be able to enter all parent folders of the data.
func letThrough(*syscall.SysProcAttr) {}
