package localpostgres

import (
	"os"
	"syscall"
)

// dieWithParent makes the kernel send SIGINT to the server, which is a fast shutdown, when the thread
// that started the server ends.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// capDACReadSearch is CAP_DAC_READ_SEARCH of capabilities(7).
const capDACReadSearch = 2

// letThrough lets a program that root starts as another user reach its files below folders that only
// root may enter, such as root's home.
func letThrough(attributes *syscall.SysProcAttr) {
	if os.Geteuid() == 0 {
		attributes.AmbientCaps = []uintptr{capDACReadSearch}
	}
}
