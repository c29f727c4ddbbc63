package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// stopGrace is how long a process may take to stop before it is killed. An API server of Paddock
	// takes up to 22 s to answer open requests.
	stopGrace    = 30 * time.Second
	pollInterval = 50 * time.Millisecond
	probeTimeout = 5 * time.Second
)

// errNotRunning is the error of a signal to a process that has ended.
var errNotRunning = errors.New("it is not running")

// command is a program with its arguments. ready returns nil once the program serves.
type command struct {
	name  string
	args  []string
	ready func(context.Context) error
}

// Process is a process of the control plane, or a program that StartProgram started. Tests kill, pause
// and restart it.
type Process struct {
	command
	path    string
	env     []string
	logFile string
	record  string // file that names the running child for a later Start
	parents *parentThread
	out     io.Writer

	mu      sync.Mutex
	current *run
}

// run is one run of a process, from its start to its end.
type run struct {
	process *os.Process
	exited  chan struct{}
	logFrom int64
}

// Restart stops the process if it runs, starts it again with the same ports and data, and returns when
// it serves. ctx limits the wait for the start.
func (p *Process) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.end(); err != nil {
		return err
	}
	return p.begin(ctx)
}

// Kill ends the process by SIGKILL and returns when it is gone.
func (p *Process) Kill() error {
	r := p.running()
	if err := p.signal(r, syscall.SIGKILL); err != nil {
		return err
	}
	<-r.exited
	return nil
}

// Pause stops the process by SIGSTOP, and returns when all its threads have stopped. Its connections
// stay open and get no response until Resume.
func (p *Process) Pause() error {
	r := p.running()
	if err := p.signal(r, syscall.SIGSTOP); err != nil {
		return err
	}
	// The threads of a process stop one after the other.
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, stopGrace, true, func(context.Context) (bool, error) {
		return stopped(r.process.Pid), nil
	})
	if err != nil {
		return fmt.Errorf("pause %s: %w", p.name, err)
	}
	return nil
}

// stopped reports whether all threads of a process have stopped. It returns false if the threads
// cannot be read, for instance because one of them ends meanwhile.
func stopped(pid int) bool {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return false
	}
	for _, thread := range threads {
		if stat, err := thread.Stat(); err != nil || stat.State != "T" {
			return false
		}
	}
	return len(threads) > 0
}

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(p.running(), syscall.SIGCONT) }

// Running reports whether the process has not ended. A paused process is running.
func (p *Process) Running() bool { return p.running() != nil }

// Pid returns the process id, or 0 if the process is not running.
func (p *Process) Pid() int {
	if r := p.running(); r != nil {
		return r.process.Pid
	}
	return 0
}

// Exited returns a channel that is closed when the current run of the process ends. It is closed
// already if the process does not run. After Restart, call Exited again.
func (p *Process) Exited() <-chan struct{} {
	if r := p.running(); r != nil {
		return r.exited
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// LogFile returns the path of the file with what the process writes to its standard streams.
func (p *Process) LogFile() string { return p.logFile }

func (p *Process) running() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	select {
	case <-p.current.exited:
		return nil
	default:
		return p.current
	}
}

func (p *Process) signal(r *run, sig syscall.Signal) error {
	if r == nil {
		return fmt.Errorf("signal %s: %w", p.name, errNotRunning)
	}
	if err := r.process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// begin starts the process and waits until it serves.
func (p *Process) begin(ctx context.Context) error {
	began := time.Now()
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.await(ctx, r); err != nil {
		return fmt.Errorf("start %s: %w\n%s", p.name, err, lastLines(p.logFile, r.logFrom))
	}
	_, _ = fmt.Fprintf(p.out, "started %s in %.1f s\n", p.name, time.Since(began).Seconds())
	return nil
}

func (p *Process) launch() (*run, error) {
	log, err := os.OpenFile(p.logFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.parents.start(cmd); err != nil {
		return nil, err
	}
	// This comes before Wait: until Wait, no other process can get the id of the child, even if the
	// child has ended.
	recorded := recordChild(p.record, cmd.Process.Pid)
	r := &run{process: cmd.Process, exited: make(chan struct{}), logFrom: end}
	go func() {
		_ = cmd.Wait() // the log says how the process ended
		close(r.exited)
	}()
	p.mu.Lock()
	p.current = r
	p.mu.Unlock()
	return r, recorded
}

func (p *Process) await(ctx context.Context, r *run) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.exited:
			return false, errors.New("it ended before it was ready")
		default:
		}
		last = p.ready(ctx)
		return last == nil, nil
	})
	return errors.Join(err, last)
}

// end stops the process by SIGTERM, and after stopGrace by SIGKILL.
func (p *Process) end() error {
	r := p.running()
	if r == nil {
		return nil
	}
	// A paused process handles SIGTERM only after SIGCONT.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := r.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s: %w", p.name, err)
		}
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-r.exited:
		return nil
	case <-timer.C:
	}
	_, _ = fmt.Fprintf(p.out, "%s did not stop within %s: killing it\n", p.name, stopGrace)
	if err := r.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-r.exited
	return nil
}
