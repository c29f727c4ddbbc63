package localcluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestEndOrphan(t *testing.T) {
	tests := map[string]struct {
		record func(*child)
		suffix string // of the folder that is started anew
		ended  bool
	}{
		"ours":                    {ended: true},
		"another start time":      {record: func(c *child) { c.StartTicks-- }},
		"another executable":      {record: func(c *child) { c.Executable += "2" }},
		"state in another folder": {suffix: "2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "record")
			orphan := startIdle(t, dir)
			if err := recordChild(file, orphan.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if test.record != nil {
				editRecord(t, file, test.record)
			}

			if err := endOrphan(t.Context(), file, dir+test.suffix); err != nil {
				t.Fatal(err)
			}

			// A killed process gives its memory up before the kernel calls it ended.
			for deadline := time.Now().Add(30 * time.Second); test.ended && running(t, orphan.Process.Pid) && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if ended := !running(t, orphan.Process.Pid); ended != test.ended {
				t.Errorf("process ended: %t, want %t", ended, test.ended)
			}
		})
	}
}

func TestEndOrphanWithoutOne(t *testing.T) {
	tests := map[string]string{
		"torn record":        `{"pid":`,
		"process long ended": `{"pid":2147483647,"startTicks":1,"executable":"/bin/etcd"}`,
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "record")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := endOrphan(t.Context(), file, t.TempDir()); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("no record", func(t *testing.T) {
		if err := endOrphan(t.Context(), filepath.Join(t.TempDir(), "record"), t.TempDir()); err != nil {
			t.Fatal(err)
		}
	})
}

// startIdle runs a process that has a file of dir on its command line and lives until it is
// ended, as one that a crashed owner left behind.
func startIdle(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	watched := filepath.Join(dir, "watched")
	if err := os.WriteFile(watched, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tail", "-f", watched)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// The kernel sets the command line after it closes the descriptors that Start waits for.
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		process, err := procfs.NewProc(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if arguments, err := process.CmdLine(); err == nil && len(arguments) == 3 {
			return cmd
		}
	}
	t.Fatal("the process has no command line")
	return nil
}

func editRecord(t *testing.T, file string, edit func(*child)) {
	t.Helper()
	c, err := readChild(file)
	if err != nil {
		t.Fatal(err)
	}
	edit(&c)
	content, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// running counts a process that ended as gone even if nobody has collected it yet.
func running(t *testing.T, pid int) bool {
	t.Helper()
	process, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := process.Stat()
	return err == nil && stat.State != "Z"
}
