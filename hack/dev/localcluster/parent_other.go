//go:build !linux

package localcluster

import (
	"errors"
	"syscall"
)

func dieWithParent() (*syscall.SysProcAttr, error) {
	return nil, errors.New("the local control plane needs Linux: elsewhere its processes could outlive a crash of their parent")
}
