package preflight

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	running := t.TempDir()
	lock, err := Settings{Dir: running, Storage: "cluster", Data: "clinic"}.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		settings Settings
		want     string
	}{
		"all right":       {Settings{Dir: t.TempDir(), Storage: "postgres", Data: "none"}, ""},
		"a new folder":    {Settings{Dir: t.TempDir() + "/a/b", Storage: "cluster", Data: "hl7"}, ""},
		"unknown storage": {Settings{Dir: t.TempDir(), Storage: "mysql", Data: "none"}, `STORAGE: "mysql" is neither cluster nor postgres`},
		"unknown data":    {Settings{Dir: t.TempDir(), Storage: "cluster", Data: "foo"}, `DATA: "foo" is not clinic, hl7 or none`},
		"a port in use": {
			Settings{Dir: t.TempDir(), Storage: "cluster", Data: "none", Port: taken},
			fmt.Sprintf("port %d is in use: choose another one, such as PORT=9090", taken),
		},
		"no port": {
			Settings{Dir: t.TempDir(), Storage: "cluster", Data: "none", Port: 70000},
			"port 70000: listen tcp: address 70000: invalid port: choose another one, such as PORT=9090",
		},
		// A run that is still there has the port too: its folder comes first.
		"a running one, with its port": {
			Settings{Dir: running, Storage: "cluster", Data: "none", Port: taken},
			fmt.Sprintf("already running in %s (process %d); stop that process, or use another folder and port, for example DIR=.local2 PORT=9090", running, os.Getpid()),
		},
	} {
		t.Run(name, func(t *testing.T) {
			lock, err := test.settings.Take(t.Context())
			got := ""
			if err != nil {
				got = err.Error()
			} else if err := lock.Release(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Settings{Dir: running, Storage: "cluster", Data: "clinic"}.Take(t.Context())
	if err != nil {
		t.Fatalf("after the other one ended: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
