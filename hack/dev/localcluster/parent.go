package localcluster

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
)

var errStopped = errors.New("the control plane was stopped: start another one")

// parentThread is an operating system thread that starts all children. Linux kills a child when the
// thread that started it ends, even if the process goes on. This thread ends after the children, or
// with the process.
type parentThread struct {
	jobs chan func()
	over chan struct{}
	end  func()
}

func newParentThread() *parentThread {
	t := &parentThread{jobs: make(chan func()), over: make(chan struct{})}
	t.end = sync.OnceFunc(func() { close(t.over) })
	go t.serve()
	return t
}

func (t *parentThread) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for {
		select {
		case job := <-t.jobs:
			job()
		case <-t.over:
			return
		}
	}
}

// start runs cmd as a child that cannot outlive this process.
func (t *parentThread) start(cmd *exec.Cmd) error {
	attributes, err := dieWithParent()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = attributes
	done := make(chan error, 1)
	select {
	case t.jobs <- func() { done <- cmd.Start() }:
		return <-done
	case <-t.over:
		return errStopped
	}
}
