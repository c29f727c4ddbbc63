package localpostgres

import (
	"os"
	"syscall"
)

// dieWithParent asks the kernel to shut the server down when the thread that starts it ends.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// capDACReadSearch is CAP_DAC_READ_SEARCH of capabilities(7).
const capDACReadSearch = 2

// letThrough lets a program that root starts as another user pass folders that only root may
// enter, such as root's own, on its way to its files.
func letThrough(attributes *syscall.SysProcAttr) {
	if os.Geteuid() == 0 {
		attributes.AmbientCaps = []uintptr{capDACReadSearch}
	}
}
