package robustness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// process is a writer on the engine, seen from outside.
type process struct {
	mu      sync.Mutex
	command *exec.Cmd
	tasks   io.WriteCloser
	told    *json.Decoder
	// spared means that signals are not sent, because the program was killed while it started, and would be
	// again and again on a busy machine.
	spared bool
}

// childStart is how long a writer may take until it takes tasks.
const childStart = time.Minute

// start runs the program anew and returns when it takes tasks. It may be killed once while it starts.
func (p *process) start(env ...string) error {
	err := p.launch(env...)
	if err != nil && p.killed() {
		p.spare(true)
		defer p.spare(false)
		err = p.launch(env...)
	}
	return err
}

func (p *process) spare(spared bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spared = spared
}

// killed reports whether the program, which is dead, was killed.
func (p *process) killed() bool {
	if p.command == nil || p.command.ProcessState == nil {
		return false
	}
	status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

func (p *process) launch(env ...string) error {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), env...)
	command.Stderr = GinkgoWriter
	tasks, err := command.StdinPipe()
	if err != nil {
		return err
	}
	told, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.command, p.tasks, p.told = command, tasks, json.NewDecoder(told)
	p.mu.Unlock()
	watchdog := time.AfterFunc(childStart, func() { _ = command.Process.Kill() })
	defer watchdog.Stop()
	m, err := p.next()
	if err != nil || m.Event != ready {
		return fmt.Errorf("start a writer on the engine: %q, %w", m.Event, err)
	}
	return nil
}

// send gives the program a task.
func (p *process) send(t task) error {
	return json.NewEncoder(p.tasks).Encode(t)
}

// next waits for what the program tells. After an error it is dead.
func (p *process) next() (message, error) {
	var m message
	err := p.told.Decode(&m)
	if err != nil {
		_ = p.command.Wait() // it was killed, or ends because its input ended
	}
	return m, err
}

func (p *process) signal(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command != nil && !p.spared {
		_ = p.command.Process.Signal(signal) // it may have ended by itself
	}
}

// end lets the program end after its last task.
func (p *process) end() {
	if p.tasks != nil && p.tasks.Close() == nil {
		_, _ = p.next()
	}
}
