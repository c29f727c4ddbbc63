package localcluster

import "syscall"

// dieWithParent asks the kernel to kill a child with the thread that starts it. The process
// group keeps a terminal's Ctrl-C, meant for us, from ending etcd before its API server.
func dieWithParent() (*syscall.SysProcAttr, error) {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}, nil
}
