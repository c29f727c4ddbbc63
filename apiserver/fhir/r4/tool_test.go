package r4

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolFiles are those of hack/test/r4check.
var toolFiles = []string{"package.json", "package-lock.json", ".npmrc", "check.mjs", "extract.mjs"}

// runTool gives a program of hack/test/r4check lines, and returns the lines that it answers.
func runTool(t *testing.T, program string, input [][]byte) [][]byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "node", filepath.Join(installTool(t), program))
	command.Stdin = bytes.NewReader(append(bytes.Join(input, []byte{'\n'}), '\n'))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", program, err, complaints.String())
	}
	return bytes.Split(bytes.TrimSuffix(output, []byte{'\n'}), []byte{'\n'})
}

// installTool installs hack/test/r4check below bin, where it stays.
func installTool(t *testing.T) string {
	const source = "../../../hack/test/r4check"
	tool, err := filepath.Abs("../../../bin/r4check")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	current := true
	for _, name := range toolFiles {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(tool, name))
		if !bytes.Equal(before, text) {
			current = current && strings.HasSuffix(name, ".mjs")
			if err := os.WriteFile(filepath.Join(tool, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(tool, "node_modules")); current && err == nil {
		return tool
	}
	command := exec.CommandContext(t.Context(), "npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = tool
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, output)
	}
	return tool
}
