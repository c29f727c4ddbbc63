// Package guides runs the code blocks of README.md and docs/guides against a running `make run`, as
// a reader does who follows a guide from top to bottom in a checkout.
package guides

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"sigs.k8s.io/yaml"
)

func TestGuides(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "The guides")
}

// address is where guides say that Paddock is. The instance of the tests has another port.
const address = "http://127.0.0.1:8080"

var (
	root string
	// demo is the folder of the running instance, with url, token and kubeconfig.
	demo string
	// url is the address of the running instance.
	url string
	// counts are the numbers of blocks by what happened to them.
	counts = map[string]int{}
)

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "paddock-guides")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	demo = filepath.Join(dir, "local")
	run := exec.Command(filepath.Join(root, "bin", "run"), "--dir", demo, "--bin", filepath.Join(root, "bin"), "--source", root, "--port", "0")
	session, err := gexec.Start(run, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred(), "the program comes from `make build`")
	DeferCleanup(func() {
		session.Interrupt()
		Eventually(session).WithTimeout(time.Minute).Should(gexec.Exit())
		Expect(filepath.Join(demo, "url")).NotTo(BeAnExistingFile())
	})
	Eventually(session.Out).WithContext(ctx).WithTimeout(4 * time.Minute).Should(gbytes.Say(`\nPaddock is ready after`))
	site, err := os.ReadFile(filepath.Join(demo, "url"))
	Expect(err).NotTo(HaveOccurred())
	url, _, _ = strings.Cut(string(site), "/site/")
	output, err := kubectl(ctx, "create", "namespace", "guides").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}, NodeTimeout(5*time.Minute))

var _ = ReportAfterSuite("blocks", func(Report) {
	fmt.Printf("blocks of the guides: %d run, %d manifests accepted by kube-apiserver, %d parsed as JSON or YAML; %d excused with a reason, %d of other languages\n",
		counts["run"], counts["accepted"], counts["parsed"], counts["excused"], counts["other"])
})

// guides are the files whose blocks are run.
func guides() []string {
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "guides", "*.md"))
	if err != nil || len(found) == 0 {
		panic(fmt.Sprint("there are no guides: ", err))
	}
	return append([]string{filepath.Join("..", "..", "..", "README.md")}, found...)
}

var _ = Describe("A guide", func() {
	for _, path := range guides() {
		It("runs: "+filepath.Base(path), func(ctx SpecContext) {
			text, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			blocks, err := blocksOf(string(text))
			Expect(err).NotTo(HaveOccurred(), path)
			var commands []block
			for _, b := range blocks {
				switch {
				case b.excuse != "":
					counts["excused"]++
				case b.language == "sh":
					commands = append(commands, b)
					counts["run"]++
				case b.language == "json":
					Expect(json.Valid([]byte(b.text))).To(BeTrue(), "%s:%d is not JSON; if it is shortened, mark it with <!-- not run: … -->", path, b.line)
					counts["parsed"]++
				case b.language == "yaml":
					checkManifest(ctx, path, b)
				default:
					counts["other"]++ // outputs, and programs that have their own tests
				}
			}
			if len(commands) > 0 {
				runCommands(ctx, path, commands)
			}
		}, NodeTimeout(3*time.Minute))
	}
})

// checkManifest lets kube-apiserver validate a block with an object of ours. A part of an object need
// only be YAML. An object of another namespace than demo is checked in the namespace guides.
func checkManifest(ctx SpecContext, path string, b block) {
	GinkgoHelper()
	var object map[string]any
	Expect(yaml.Unmarshal([]byte(b.text), &object)).To(Succeed(), "%s:%d is not YAML", path, b.line)
	version, _ := object["apiVersion"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	if !strings.Contains(version, "paddock.health/") || metadata == nil {
		counts["parsed"]++
		return
	}
	if metadata["namespace"] != "demo" {
		metadata["namespace"] = "guides"
	}
	manifest, err := yaml.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	apply := kubectl(ctx, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	apply.Stdin = bytes.NewReader(manifest)
	output, err := apply.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s:%d: kube-apiserver refuses it; if it needs other settings of the installation, mark it with <!-- not run: … -->\n%s", path, b.line, output)
	counts["accepted"]++
}

func kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), append([]string{"--kubeconfig", filepath.Join(demo, "kubeconfig")}, args...)...)
}

// curlWrapper is a program curl that runs the real one, and appends the status of each response from
// 400 to a file.
const curlWrapper = `#!/bin/bash
messages=$(mktemp)
%[1]s -w '%%{stderr}\n@@status %%{http_code}\n' "$@" 2> "$messages"
code=$?
grep -v '^@@status ' "$messages" >&2
sed -n 's/^@@status \([45][0-9][0-9]\)$/\1/p' "$messages" >> %[2]s
rm -f "$messages"
exit $code
`

// runCommands runs the blocks of a guide in one shell, in a new folder that has what a checkout has
// after `make run`. A command that fails ends it, and so does a response that the guide does not say.
func runCommands(ctx SpecContext, path string, blocks []block) {
	GinkgoHelper()
	checkout := GinkgoT().TempDir()
	for _, name := range []string{"bin", "charts", "cmd", "config", "docs", "go.mod", "go.sum", "Makefile"} {
		Expect(os.Symlink(filepath.Join(root, name), filepath.Join(checkout, name))).To(Succeed())
	}
	Expect(os.Symlink(demo, filepath.Join(checkout, ".local"))).To(Succeed())
	home := GinkgoT().TempDir()
	statuses, progress := filepath.Join(home, "statuses"), filepath.Join(home, "progress")
	curl, err := exec.LookPath("curl")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Mkdir(filepath.Join(home, "bin"), 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(home, "bin", "curl"), fmt.Appendf(nil, curlWrapper, curl, statuses), 0o700)).To(Succeed())

	var script strings.Builder
	for i, b := range blocks {
		text := strings.ReplaceAll(b.text, address, url)
		fmt.Fprintf(&script, "echo %d >> %s; : > %s\n%s\n", i, progress, statuses, text)
		fmt.Fprintf(&script, "test \"$(xargs < %s)\" = '%s' || { echo \"responses from 400: $(xargs < %s), the guide says: %s\"; exit 1; }\n",
			statuses, strings.Join(b.refusals, " "), statuses, strings.Join(b.refusals, " "))
	}
	shell := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script.String())
	shell.Dir = checkout
	shell.Env = []string{"HOME=" + home, "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH"), "TMPDIR=" + home, "NO_COLOR=1"}
	shell.WaitDelay = time.Second // a command in the background may keep the output open
	output, err := shell.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		begun, _ := os.ReadFile(progress)
		last := blocks[max(0, strings.Count(string(begun), "\n")-1)]
		Fail(fmt.Sprintf("%s:%d: the block fails (%v); if it cannot be run here, mark it with <!-- not run: REASON -->\n%s\n%s", path, last.line, err, last.text, output))
	}
	GinkgoWriter.Printf("%s\n%s\n", path, output)
}
