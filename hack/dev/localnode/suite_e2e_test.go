//go:build linux

package localnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

// victimVariable makes this test binary a program that encloses itself, leaves behind all that
// a node may, and waits to be killed. Its value marks the process that it starts.
const victimVariable = "LOCALNODE_VICTIM"

func TestMain(m *testing.M) {
	mark := os.Getenv(victimVariable)
	if mark == "" {
		os.Exit(m.Run())
	}
	err := Enclose(mark)
	if err == nil {
		err = litter(mark)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// litter makes links, a mount, a cgroup and a process that does not mind losing its parent.
func litter(mark string) error {
	if err := prepareNetwork(context.Background()); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(cgroupMount, "memory", "k8s.io"), 0o755); err != nil {
		return err
	}
	commands := [][]string{
		{"mount", "-t", "tmpfs", "tmpfs", mark},
		{"iptables", "-t", "nat", "-N", "LITTER"},
		{"setsid", "--fork", "sh", "-c", "while sleep 1; do :; done", mark},
	}
	for _, command := range commands {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stderr = os.Stderr // not a pipe, which would be read to the end of the process left behind
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	fmt.Println("ready")
	// Without another goroutine, select {} would be a deadlock, which ends the program.
	time.Sleep(time.Hour)
	return errors.New("it was not killed")
}

func TestNothingIsLeftOfAKilledNode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root may make namespaces: run the test as root")
	}
	dir := t.TempDir()
	victim := exec.Command("/proc/self/exe")
	victim.Env = append(os.Environ(), victimVariable+"="+dir)
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill() })
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("start an enclosed program: it says %q: %v", line, err)
	}
	// A started process shows its arguments only once it has replaced that which started it.
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return processesWith(t, dir) > 0, nil
	})
	if err != nil {
		t.Fatalf("see the process that is to be left behind: %v", err)
	}
	if left := traces(t, dir); len(left) > 0 {
		t.Errorf("while it runs, the machine shows %q, want nothing", left)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Wait(); err == nil {
		t.Fatal("a killed program ended well")
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return processesWith(t, dir) == 0, nil
	})
	if err != nil {
		t.Fatalf("wait for the enclosed processes to end: %v", err)
	}
	// It had no chance to remove its cgroups; the next one does. The kernel lets go of a cgroup
	// a moment after its last process.
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := removeCgroups(fmt.Sprintf("%s%d", cgroupPrefix, victim.Process.Pid))
		return len(cgroupsOf(t, victim.Process.Pid)) == 0, err
	})
	if err != nil {
		t.Errorf("remove its cgroups: %v", err)
	}
	if left := append(traces(t, dir), cgroupsOf(t, victim.Process.Pid)...); len(left) > 0 {
		t.Errorf("%q are left, want nothing", left)
	}
}

// processesWith counts processes with an argument or variable that holds mark.
func processesWith(t *testing.T, mark string) int {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, process := range all {
		if arguments, err := process.CmdLine(); err == nil && strings.Contains(strings.Join(arguments, " "), mark) {
			count++
		}
	}
	return count
}

// traces are what the machine itself shows of a node.
func traces(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, link := range []string{"node0", "node1"} {
		if _, err := os.Stat("/sys/class/net/" + link); !errors.Is(err, os.ErrNotExist) {
			found = append(found, link)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		found = append(found, "a mount at "+dir)
	}
	if rules, err := exec.Command("iptables-save", "-t", "nat").Output(); err != nil {
		t.Fatal(err)
	} else if strings.Contains(string(rules), "LITTER") {
		found = append(found, "iptables rules")
	}
	if _, err := os.Stat(filepath.Join(cgroupMount, "memory", "k8s.io")); !errors.Is(err, os.ErrNotExist) {
		found = append(found, "a cgroup of containers")
	}
	return found
}

func cgroupsOf(t *testing.T, pid int) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cgroupMount, "*", fmt.Sprintf("%s%d", cgroupPrefix, pid)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
