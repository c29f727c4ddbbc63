package kubectl_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// script runs kubectl as an administrator, in a namespace, and counts how often.
type script struct {
	namespace string
	calls     int
	// environment is kubectl's, beside ours.
	environment []string
}

// ok runs a kubectl that has to succeed, and returns what it prints. More are
// arguments with spaces in them.
func (s *script) ok(ctx context.Context, line string, more ...string) string {
	GinkgoHelper()
	return s.feed(ctx, "", line, more...)
}

// feed is ok with something on standard input.
func (s *script) feed(ctx context.Context, input, line string, more ...string) string {
	GinkgoHelper()
	output, said, err := s.run(ctx, input, line, more...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s %q\n%s%s", line, more, output, said)
	return output
}

// no runs a kubectl that has to fail, and returns how.
func (s *script) no(ctx context.Context, line string, more ...string) string {
	GinkgoHelper()
	return s.noFeed(ctx, "", line, more...)
}

func (s *script) noFeed(ctx context.Context, input, line string, more ...string) string {
	GinkgoHelper()
	output, said, err := s.run(ctx, input, line, more...)
	Expect(err).To(HaveOccurred(), "kubectl %s %q\n%s", line, more, output)
	return said
}

func (s *script) run(ctx context.Context, input, line string, more ...string) (output, said string, err error) {
	s.calls++
	args := append([]string{"--kubeconfig", cluster.Kubeconfig(), "--cache-dir", cache, "--namespace", s.namespace}, strings.Fields(line)...)
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), append(args, more...)...)
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), s.environment...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// rows are the words of a table's lines.
func rows(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// file writes a file for kubectl.
func file(name, content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// code is how a kubectl ends that may do so with another code than 0.
func (s *script) code(ctx context.Context, input, line string) (int, string) {
	GinkgoHelper()
	output, said, err := s.run(ctx, input, line)
	if err == nil {
		return 0, output
	}
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // exec returns it as it is
	Expect(ok).To(BeTrue(), "kubectl %s: %v", line, err)
	return exit.ExitCode(), output + said
}
