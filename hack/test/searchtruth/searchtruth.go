// Package searchtruth finds the searchable values of FHIR resources independently of the server:
// fhirpath.js evaluates HL7's own expressions of the search parameters, and simple code turns the
// results into index values. Tests compare the server with it.
package searchtruth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Truth evaluates the expressions of search parameters.
type Truth struct {
	// Parameters has the parameters of each type, by name.
	Parameters map[string]map[string]Parameter
	// Compartments has the compartments by the type of the record that owns them.
	Compartments map[string]Compartment

	tool  string
	types map[string]bool
}

// New reads HL7's expressions and installs fhirpath.js. It keeps the downloads below bin for the next
// call.
func New(ctx context.Context, bin string) (*Truth, error) {
	truth := &Truth{Compartments: map[string]Compartment{}}
	var err error
	if truth.Parameters, truth.types, err = load(ctx, bin, truth.Compartments); err != nil {
		return nil, fmt.Errorf("read HL7's search parameters and compartments: %w", err)
	}
	if truth.tool, err = install(ctx, filepath.Join(bin, "searchtruth")); err != nil {
		return nil, fmt.Errorf("install hack/test/searchtruth: %w", err)
	}
	return truth, nil
}

// Entries returns the searchable values of each resource, in the order of resources.
func (t *Truth) Entries(ctx context.Context, resources [][]byte) ([][]store.IndexValue, error) {
	lines := make([]string, 0, 1+len(resources))
	evaluated := map[string]map[string]string{}
	for typ, parameters := range t.Parameters {
		evaluated[typ] = map[string]string{}
		for name, parameter := range parameters {
			evaluated[typ][name] = evaluable(parameter.Expression)
		}
	}
	expressions, err := json.Marshal(evaluated)
	if err != nil {
		return nil, err
	}
	lines = append(lines, string(expressions))
	for _, resource := range resources {
		line, err := json.Marshal(string(resource))
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line))
	}
	answers, err := t.run(ctx, "values.mjs", lines)
	if err != nil {
		return nil, err
	}
	all := make([][]store.IndexValue, len(resources))
	for i, answer := range answers {
		if all[i], err = t.entriesOf(resources[i], answer); err != nil {
			return nil, fmt.Errorf("%w in the line %s", err, answer)
		}
	}
	return all, nil
}

// run runs a Node.js program with lines as its input, and returns the lines that it prints: one for
// each line after the first.
func (t *Truth) run(ctx context.Context, program string, lines []string) ([]string, error) {
	command := exec.CommandContext(ctx, "node", filepath.Join(t.tool, program))
	command.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("node %s: %w\n%s", program, err, complaints.String())
	}
	answers := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(answers) != len(lines)-1 {
		return nil, fmt.Errorf("node %s printed %d lines, want %d", program, len(answers), len(lines)-1)
	}
	return answers, nil
}

// toolFiles are the files of this folder that are part of the Node.js tool.
var toolFiles = []string{"package.json", "package-lock.json", ".npmrc", "values.mjs"}

// install copies the tool to a folder and installs its npm packages there, unless they are installed
// and package.json and package-lock.json are unchanged.
func install(ctx context.Context, to string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	// The tests of several packages can install the tool at the same time.
	lock, err := os.OpenFile(to+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", to, err)
	}
	current := true
	for _, name := range toolFiles {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(here), name))
		if err != nil {
			return "", err
		}
		if before, _ := os.ReadFile(filepath.Join(to, name)); !bytes.Equal(before, text) {
			current = current && strings.HasSuffix(name, ".mjs")
			if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
				return "", err
			}
		}
	}
	if _, err := os.Stat(filepath.Join(to, "node_modules")); current && err == nil {
		return to, nil
	}
	command := exec.CommandContext(ctx, "npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = to
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, output)
	}
	return to, nil
}
