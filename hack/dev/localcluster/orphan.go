package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

// child is what a later Start needs to recognise a process for certain: its id alone may
// have gone to another program since.
type child struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"`
	Executable string `json:"executable"`
}

func recordChild(file string, pid int) error {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return fmt.Errorf("record process %d: %w", pid, err)
	}
	c, err := inspect(proc)
	if err != nil {
		return fmt.Errorf("record process %d: %w", pid, err)
	}
	content, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("record process %d: %w", pid, err)
	}
	return replaceFile(file, content)
}

func inspect(proc procfs.Proc) (child, error) {
	stat, err := proc.Stat()
	if err != nil {
		return child{}, err
	}
	executable, err := proc.Executable()
	if err != nil {
		return child{}, err
	}
	// The kernel marks a binary that was rebuilt while it ran.
	executable = strings.TrimSuffix(executable, " (deleted)")
	return child{PID: proc.PID, StartTicks: stat.Starttime, Executable: executable}, nil
}

// endOrphan kills the recorded process if it is certainly ours: same id, start time and
// executable, and dir on its command line. The kernel ends children with their parent, so
// there is one only if that went wrong.
func endOrphan(ctx context.Context, file, dir string) error {
	c, err := readChild(file)
	if err != nil {
		return err
	}
	if c.PID == 0 {
		return nil
	}
	process, err := os.FindProcess(c.PID) // a handle: it cannot come to mean another process
	if err != nil {
		return fmt.Errorf("find process %d of the last start: %w", c.PID, err)
	}
	defer func() { _ = process.Release() }()
	if !c.livesIn(dir) {
		return nil
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end process %d of the last start: %w", c.PID, err)
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return !c.livesIn(dir), nil
	})
	if err != nil {
		return fmt.Errorf("end process %d of the last start: %w", c.PID, err)
	}
	return nil
}

// readChild returns the zero child when there is no record, or one torn by a crash of the
// machine, which no process survived.
func readChild(file string) (child, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return child{}, nil
	}
	if err != nil {
		return child{}, fmt.Errorf("read the processes of the last start: %w", err)
	}
	var c child
	if err := json.Unmarshal(content, &c); err != nil {
		return child{}, nil //nolint:nilerr // a torn record is no record
	}
	return c, nil
}

// livesIn reports whether the recorded process still runs, on the state in dir.
func (c child) livesIn(dir string) bool {
	proc, err := procfs.NewProc(c.PID)
	if err != nil {
		return false
	}
	if now, err := inspect(proc); err != nil || now != c {
		return false
	}
	arguments, err := proc.CmdLine()
	if err != nil {
		return false
	}
	return strings.Contains(strings.Join(arguments, "\n"), dir+"/")
}
