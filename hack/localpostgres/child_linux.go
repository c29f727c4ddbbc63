package localpostgres

import "syscall"

// dieWithParent asks the kernel to shut the server down when the thread that starts it ends.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }
