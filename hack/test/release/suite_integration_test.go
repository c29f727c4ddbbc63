// Package release_test assembles a release from the programs of `make build`, pushes it to a real registry, and verifies
// what the registry has. `make release-test` does the same with programs built for the release.
package release_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localregistry"
)

func TestRelease(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "A release in a registry")
}

const version = "0.0.1-test.1"

var (
	root     = must(filepath.Abs(filepath.Join("..", "..", "..")))
	bin      = filepath.Join(root, "bin")
	registry *localregistry.Registry
	// first and second are folders of releases of the same programs. The first is pushed with the key.
	first, second, key string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	var err error
	registry, err = localregistry.Start(ctx, bin, dir, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return registry.Stop() })
	programs := filepath.Join(dir, "programs")
	platform := filepath.Join(programs, "linux-"+runtime.GOARCH)
	Expect(os.MkdirAll(platform, 0o755)).To(Succeed())
	for _, program := range []string{"apiserver", "controller", "kubectl-paddock"} {
		Expect(os.Symlink(filepath.Join(bin, program), filepath.Join(platform, program))).To(Succeed())
	}
	first, second = assemble(ctx, programs, filepath.Join(dir, "first")), assemble(ctx, programs, filepath.Join(dir, "second"))
	key = filepath.Join(dir, "key")
	run(ctx, "release", "keygen", "-out", key)
	run(ctx, "release", "push", "-registry", address(), "-dir", first, "-key", key)
}, NodeTimeout(5*time.Minute))

// assemble packs the images of the programs anew and writes a release.
func assemble(ctx context.Context, programs, out string) string {
	GinkgoHelper()
	images := out + "-images"
	Expect(os.MkdirAll(images, 0o755)).To(Succeed())
	for _, program := range []string{"apiserver", "controller"} {
		run(ctx, "images", "-out", filepath.Join(images, program+".tar"), "-name", address()+"/"+program+":"+version, "-created", "1700000000",
			"-binary", runtime.GOARCH+"="+filepath.Join(programs, "linux-"+runtime.GOARCH, program), "-label", "version="+version)
	}
	run(ctx, "release", "assemble", "-version", version, "-revision", "0123456789012345678901234567890123456789", "-created", "1700000000",
		"-source", root, "-programs", programs, "-images", images, "-helm", filepath.Join(bin, "helm"), "-registry", address(), "-out", out)
	return out
}

// address is that of the registry, and a path in it.
func address() string { return registry.Address + "/clinics" }

// run runs one of the tools, which must succeed, and returns its output.
func run(ctx context.Context, tool string, args ...string) string {
	GinkgoHelper()
	out, err := try(ctx, tool, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %v: %s", tool, args, out)
	return out
}

func try(ctx context.Context, tool string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(bin, tool), args...)
	home := filepath.Dir(first)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

// digests are those of the images and the chart that a release lists, by repository.
func digests(dir string) map[string]string {
	GinkgoHelper()
	var contents struct {
		Artifacts []struct{ Repository, Digest string }
	}
	text, err := os.ReadFile(filepath.Join(dir, "release.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &contents)).To(Succeed())
	found := map[string]string{}
	for _, artifact := range contents.Artifacts {
		found[artifact.Repository] = artifact.Digest
	}
	return found
}

// listed returns the modules in the bill of materials of a program for this machine.
func listed(program string) []string {
	GinkgoHelper()
	var bom struct {
		Components []struct{ Name, Version string }
	}
	text, err := os.ReadFile(filepath.Join(first, program+"_"+runtime.GOOS+"_"+runtime.GOARCH+".cdx.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &bom)).To(Succeed())
	var all []string
	for _, component := range bom.Components {
		all = append(all, component.Name+" "+component.Version)
	}
	return all
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
