// Package tools tests the scripts that build the tools.
package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvtestAssets copies programs that only print versions.
func TestEnvtestAssets(t *testing.T) {
	fitting := map[string]string{"etcd": "etcd Version: 3.6.4", "kube-apiserver": "Kubernetes v1.37.0", "kubectl": "Client Version: v1.37.1"}
	tests := map[string]struct {
		program, prints string
		// refusal is a part of the message. Empty: the folder is accepted.
		refusal string
	}{
		"fitting versions":        {},
		"an older kube-apiserver": {"kube-apiserver", "Kubernetes v1.36.2", "kube-apiserver has the version v1.36.2, want 1.37"},
		"a newer kubectl":         {"kubectl", "Client Version: v1.38.0", "kubectl has the version v1.38.0, want 1.37"},
		"an old etcd":             {"etcd", "etcd Version: 3.4.9", "etcd has the version 3.4.9, want 3.5 to 3.7"},
		"a newer etcd":            {"etcd", "etcd Version: 3.8.0", "etcd has the version 3.8.0, want 3.5 to 3.7"},
		"another program":         {"kubectl", "hello", "kubectl has the version unknown"},
		"no kubectl":              {"kubectl", "", "kubectl does not exist"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assets, bin := t.TempDir(), filepath.Join(t.TempDir(), "bin")
			for program, prints := range fitting {
				if program == test.program {
					prints = test.prints
				}
				if prints == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(assets, program), fmt.Appendf(nil, "#!/bin/sh\necho '%s'\n", prints), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("./envtest.sh", assets, bin, "v1.37.2", "v3.7.3").CombinedOutput()
			copied, _ := filepath.Glob(filepath.Join(bin, "*"))
			if test.refusal == "" {
				if err != nil || len(copied) != 3 {
					t.Errorf("copied %v, %v: %s", copied, err, out)
				}
				return
			}
			if err == nil || !strings.Contains(string(out), test.refusal) {
				t.Errorf("got %v and %q, want an error with %q", err, out, test.refusal)
			}
			if len(copied) > 0 {
				t.Errorf("copied %v of a folder that does not fit", copied)
			}
		})
	}
}
