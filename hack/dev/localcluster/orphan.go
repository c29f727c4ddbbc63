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

// child has what a later Start needs to recognise a process. The id alone does not suffice, because
// another program may have got it since.
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
	// The kernel adds this mark to the path of a binary that was replaced while it ran.
	executable = strings.TrimSuffix(executable, " (deleted)")
	return child{PID: proc.PID, StartTicks: stat.Starttime, Executable: executable}, nil
}

// endOrphan kills the recorded process, if it still runs, and waits until it has ended. It kills only
// a process with the same id, start time and executable, and with dir on its command line. The kernel
// normally ends children with their parent, so there rarely is such a process.
func endOrphan(ctx context.Context, file, dir string) error {
	c, err := readChild(file)
	if err != nil {
		return err
	}
	if c.PID == 0 {
		return nil
	}
	process, err := os.FindProcess(c.PID) // taken before the check, because this handle never refers to another process
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

// readChild returns the zero child if there is no record. It does the same for an invalid record,
// which is left by a crash of the machine, because no process survives such a crash.
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

// livesIn reports whether the recorded process still runs with a file or folder below dir on its
// command line.
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
