package localcluster

import "syscall"

// dieWithParent makes the kernel kill a child when the thread that started it ends. The child has a
// process group of its own, so that a terminal's Ctrl-C reaches only this process and does not end
// etcd before kube-apiserver.
func dieWithParent() (*syscall.SysProcAttr, error) {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}, nil
}
