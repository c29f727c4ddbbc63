//go:build linux

package localnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A program that calls Enclose runs three times: as a user started it, as process 1 of the namespaces
// (stageInit), and as the run that does the work (stageInside). stageVariable is the environment
// variable with the stage. cgroupVariable is the one with the name of the cgroup of the containers.
const (
	stageVariable  = "PADDOCK_NODE_STAGE"
	cgroupVariable = "PADDOCK_NODE_CGROUP"

	// cgroupPrefix comes before the process id of the first run, outside the namespaces.
	cgroupPrefix = "paddock-node-"

	stageInit   = "init"
	stageInside = "inside"
)

// Enclose starts the calling program again, with its arguments, in network, mount and process
// namespaces of its own. It returns nil only in that new process. In the caller, it waits for the new
// process, and exits with its exit code. When the new process ends, the kernel removes the namespaces
// with the containers, links, iptables rules and mounts of the node. Before and after the run, Enclose
// removes large files in dir, the node's folder; logs stay. It needs root. Call it in main before any
// work that must not be done twice.
func Enclose(dir string) error {
	switch os.Getenv(stageVariable) {
	case stageInside:
		return nil
	case stageInit:
		code, err := initialize()
		if err != nil {
			return err
		}
		os.Exit(code)
	}
	if os.Geteuid() != 0 {
		return errors.New("run a node: only root may start containers: run it as root")
	}
	if err := errors.Join(removeState(dir), removeCgroups(cgroupPrefix+"*")); err != nil {
		return err
	}
	code, err := runEnclosed(cgroupPrefix + strconv.Itoa(os.Getpid()))
	if err := errors.Join(err, removeState(dir)); err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// runEnclosed is the first run: it starts process 1 of the namespaces, and waits for its end. It
// returns its exit code.
func runEnclosed(cgroup string) (int, error) {
	// The kernel ends the child with the thread that starts it.
	runtime.LockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"="+stageInit, cgroupVariable+"="+cgroup)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make namespaces for a node: %w", err)
	}
	defer forwardSignals(cmd.Process)()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 1 // killed
	}
	return code, errors.Join(err, removeCgroups(cgroup))
}

// initialize is process 1 of the namespaces. It prepares the mounts and cgroups, starts the program,
// and waits for all processes whose parents have ended, as a process 1 must. It returns the exit code
// of the program.
func initialize() (int, error) {
	for _, prepare := range []func() error{prepareMounts, prepareCgroups} {
		if err := prepare(); err != nil {
			return 0, err
		}
	}
	if err := os.Setenv(stageVariable, stageInside); err != nil {
		return 0, err
	}
	program, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWCGROUP},
	})
	if err != nil {
		return 0, fmt.Errorf("start over inside the namespaces: %w", err)
	}
	defer forwardSignals(program)()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for processes: %w", err)
		case pid == program.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == program.Pid:
			return 1, nil // killed
		}
	}
}

// forwardSignals forwards SIGTERM to a process until stop is called. It ignores SIGINT, because a
// terminal's Ctrl-C reaches the process directly.
func forwardSignals(to *os.Process) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = to.Signal(s) // it may have ended on its own
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// removeState removes the large folders of an earlier run. Their mounts ended with the namespaces of
// that run.
func removeState(dir string) error {
	for _, name := range []string{dirContainerd, dirKubelet, dirVolumes, "etcd"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the state of a node: %w", err)
		}
	}
	return nil
}

// EnterCommand returns a shell command that opens a shell inside the namespaces of the calling program.
func EnterCommand() string {
	return fmt.Sprintf("nsenter --target $(pgrep --parent %s) --net --mount --pid", strings.TrimPrefix(os.Getenv(cgroupVariable), cgroupPrefix))
}
