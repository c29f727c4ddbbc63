package localpostgres

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// startChild starts a child that cannot outlive this process (on Linux), and returns a channel that is
// closed when the child ends. Linux signals a child when the thread that started it ends, so this
// thread waits for the child.
func startChild(cmd *exec.Cmd) (chan struct{}, error) {
	dieWithParent(cmd.SysProcAttr)
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log says how the child ended
		}
	}()
	return exited, <-started
}

// unprivileged returns the user to run Postgres as, because Postgres refuses to run as root: postgres
// or nobody. Nil means the user of this process.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		var found *user.User
		if found, err = user.Lookup(name); err == nil {
			return credential(found)
		}
	}
	return nil, fmt.Errorf("find a user to run as, other than root: %w", err)
}

func credential(u *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the id of user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the group of user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// signalAll signals the server and its sessions.
func (s *Server) signalAll(signal syscall.Signal) error {
	err := s.eachProcess(func(pid int) error { return syscall.Kill(pid, signal) })
	if err != nil {
		return fmt.Errorf("signal postgres: %w", err)
	}
	return nil
}

// eachProcess calls do with the main process and then with its children. Each session leads a
// process group of its own, so they are found by their parent. An error about a child that has
// ended meanwhile is ignored.
func (s *Server) eachProcess(do func(pid int) error) error {
	process, _ := s.running()
	if process == nil {
		return errNotRunning
	}
	if err := do(process.Pid); err != nil {
		return err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return fmt.Errorf("find the sessions of postgres: %w", err)
	}
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended meanwhile
		}
		pid, _, _ := strings.Cut(string(content), " ")
		behindName := string(content[strings.LastIndexByte(string(content), ')')+1:])
		if fields := strings.Fields(behindName); len(fields) > 1 && fields[1] == strconv.Itoa(process.Pid) {
			session, err := strconv.Atoi(pid)
			if err == nil {
				err = do(session)
			}
			if _, ended := os.Stat(path); err != nil && ended == nil {
				return err
			}
		}
	}
	return nil
}
