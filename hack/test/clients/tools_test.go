package clients_test

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

// tools are the programs that the clients need, with the command that shows whether the machine
// has them and the Debian packages that they are in.
var tools = []struct {
	name, packages string
	probe          []string
}{
	{"a JDK, version 17 or later", "default-jdk-headless", []string{"javac", "--release", "17", "--version"}},
	{"Maven", "maven", []string{"mvn", "--version"}},
	{"Python 3.11 or later with venv", "python3 and python3-venv", []string{"python3", "-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"}},
	{"Node.js 20 or later", "nodejs", []string{"node", "--eval", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"}},
	{"npm", "npm", []string{"npm", "--version"}},
}

// requireTools fails unless the machine has every tool.
func requireTools(ctx context.Context) {
	GinkgoHelper()
	var missing []string
	for _, tool := range tools {
		if exec.CommandContext(ctx, tool.probe[0], tool.probe[1:]...).Run() != nil {
			missing = append(missing, tool.name+" (Debian: "+tool.packages+")")
		}
	}
	Expect(missing).To(BeEmpty(), "make clients needs tools that this machine lacks: install "+strings.Join(missing, ", "))
}

// library is a folder with client libraries and the programs that use them.
type library struct {
	// source is the folder below hack/test/clients.
	source string
	// lock lists the files in source that say which packages are installed.
	lock []string
	// install lists the commands that install them into the folder that they start in.
	install [][]string
}

var (
	javaLibrary = library{
		source: "java", lock: []string{"pom.xml"},
		install: [][]string{{"mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"}},
	}
	pythonLibrary = library{
		source: "python", lock: []string{"requirements.txt"},
		install: [][]string{
			{"python3", "-m", "venv", "venv"},
			{filepath.Join("venv", "bin", "pip"), "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", "requirements.txt"},
		},
	}
	nodeLibrary = library{
		source: "node", lock: []string{"package.json", "package-lock.json", ".npmrc"},
		install: [][]string{{"npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"}},
	}
)

// folder is where the library is installed.
func (l library) folder() string { return filepath.Join(bin, "clients", l.source) }

// prepare installs the library unless its folder has what the lock files say, and copies its
// programs there.
func (l library) prepare(ctx context.Context) {
	GinkgoHelper()
	stamp := filepath.Join(l.folder(), "installed")
	wanted := l.read()
	if have, err := os.ReadFile(stamp); err != nil || !bytes.Equal(have, wanted) {
		Expect(os.RemoveAll(l.folder())).To(Succeed())
		l.copyFiles()
		for _, args := range l.install {
			By(strings.Join(args, " "))
			command := exec.CommandContext(ctx, args[0], args[1:]...)
			command.Dir = l.folder()
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%v in %s: %s", args, l.folder(), output)
		}
		Expect(os.WriteFile(stamp, wanted, 0o644)).To(Succeed())
	}
	l.copyFiles()
}

// read returns the content of the lock files.
func (l library) read() []byte {
	GinkgoHelper()
	var all []byte
	for _, name := range l.lock {
		text, err := os.ReadFile(filepath.Join(l.source, name))
		Expect(err).NotTo(HaveOccurred())
		all = append(all, text...)
	}
	return all
}

// copyFiles copies the files of the source, because Node.js looks for packages next to a program.
func (l library) copyFiles() {
	GinkgoHelper()
	Expect(os.MkdirAll(l.folder(), 0o755)).To(Succeed())
	files, err := os.ReadDir(l.source)
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(l.source, file.Name()))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(l.folder(), file.Name()), text, 0o644)).To(Succeed())
	}
}
