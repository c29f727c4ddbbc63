// Package upgrade_test installs, upgrades and runs a release from a registry. `make release-test` builds the release, in two
// folders, and packages the chart of the release before.
package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localregistry"
	"github.com/paddock-health/paddock/hack/dev/module"
)

func TestUpgrade(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "A release installed from a registry")
}

// contents is release.json.
type contents struct {
	Version   string
	Artifacts []struct{ Repository, Digest string }
}

var (
	bin, root string
	// first and second are the same release, built in two folders.
	first, second string
	release       contents
	// digests are those of the release by repository.
	digests  = map[string]string{}
	registry *localregistry.Registry
	cluster  *localcluster.Cluster
	// key is the file with the private key; the public one ends in .pub.
	key string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	bin, err = module.Bin()
	Expect(err).NotTo(HaveOccurred())
	root = filepath.Dir(bin)
	first, second = filepath.Join(bin, "releases", "test", "first"), filepath.Join(bin, "releases", "test", "second")
	text, err := os.ReadFile(filepath.Join(first, "release.json"))
	Expect(err).NotTo(HaveOccurred(), "`make release-test` builds the release")
	Expect(json.Unmarshal(text, &release)).To(Succeed())
	for _, artifact := range release.Artifacts {
		digests[artifact.Repository] = artifact.Digest
	}
	dir := GinkgoT().TempDir()
	registry, err = localregistry.Start(ctx, bin, dir, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return registry.Stop() })
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: dir, UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	key = filepath.Join(dir, "key")
	run(ctx, "release", "keygen", "-out", key)
	run(ctx, "release", "push", "-registry", registry.Address, "-dir", first, "-key", key)
}, NodeTimeout(5*time.Minute))

// run runs one of the tools as the cluster's administrator and returns what it prints.
func run(ctx context.Context, tool string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join(bin, tool), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(),
		"HELM_CACHE_HOME="+cluster.File("helm"), "HELM_CONFIG_HOME="+cluster.File("helm"), "HELM_DATA_HOME="+cluster.File("helm"))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	Expect(command.Run()).To(Succeed(), "%s %v: %s", tool, args, &out)
	return out.String()
}
