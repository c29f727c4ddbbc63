//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localregistry"
)

const (
	// registryAddress is in the network namespace of the node, so that the port is free. Container runtimes use plain
	// HTTP for this host.
	registryAddress = "127.0.0.1:5000"
	registryPath    = registryAddress + "/clinics"
)

// release is the release under test, as its file release.json describes it.
var release struct {
	Version, Revision string
	Artifacts         []struct{ Repository, Digest string }
}

// publishRelease starts a registry and pushes the release, signed by a new key, as `make release` does. The release must
// verify there by this key. The node has no images of the release, so that it can only pull them.
func publishRelease(ctx context.Context) {
	GinkgoHelper()
	folder := filepath.Join(binDir, "e2e", "release")
	text, err := os.ReadFile(filepath.Join(folder, "release.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &release)).To(Succeed())
	state := GinkgoT().TempDir()
	log, err := os.Create(filepath.Join(stateDir(), "registry.log"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(log.Close)
	registry, err := localregistry.StartAt(ctx, registryAddress, binDir, state, log)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(registry.Stop)
	tool := func(args ...string) string {
		GinkgoHelper()
		output, err := exec.CommandContext(ctx, filepath.Join(binDir, "release"), args...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "release %v: %s", args, output)
		return string(output)
	}
	key := filepath.Join(state, "key")
	tool("keygen", "-out", key)
	tool("push", "-registry", registryPath, "-dir", folder, "-key", key)
	verified := tool("verify", "-registry", registryPath, "-version", release.Version, "-dir", folder, "-key", key+".pub")
	AddReportEntry("verified release "+release.Version+" of commit "+release.Revision, "\n"+verified, ReportEntryVisibilityAlways)
}

// digestOf is that of an image or of the chart, as it was pushed.
func digestOf(repository string) string {
	GinkgoHelper()
	for _, artifact := range release.Artifacts {
		if artifact.Repository == repository {
			return artifact.Digest
		}
	}
	Fail("the release has no " + repository)
	return ""
}

// installFormer installs the release before.
func installFormer(ctx context.Context) {
	GinkgoHelper()
	helm(ctx, "install", "paddock", filepath.Join(binDir, "e2e", "former", "source", "charts", "paddock"),
		"--values", filepath.Join("manifests", "values.yaml"), "--wait", "--timeout", "4m")
}

// pushedChart is the chart of the release in the registry, by digest.
func pushedChart() []string {
	GinkgoHelper()
	return []string{"oci://" + registryPath + "/charts/paddock@" + digestOf("charts/paddock"), "--plain-http"}
}

// upgrade upgrades to the release in the registry, as docs/guides/install.md describes it.
func upgrade(ctx context.Context, args ...string) {
	GinkgoHelper()
	flags := []string{"--reset-then-reuse-values", "--values", filepath.Join("manifests", "values-new.yaml"), "--wait", "--timeout", "4m"}
	helm(ctx, slices.Concat([]string{"upgrade", "paddock"}, pushedChart(), flags, args)...)
}

// install installs the release in the registry and returns when its programs are ready.
func install(ctx context.Context) {
	GinkgoHelper()
	flags := []string{"--values", filepath.Join("manifests", "values.yaml"), "--values", filepath.Join("manifests", "values-new.yaml"), "--wait", "--timeout", "4m"}
	helm(ctx, slices.Concat([]string{"install", "paddock"}, pushedChart(), flags)...)
}

// expectPushed checks that all containers of the chart run images of the digests that were pushed.
func expectPushed(ctx context.Context) {
	GinkgoHelper()
	for component, repository := range map[string]string{"controller": "controller", "facade": "apiserver", "delivery": "apiserver", "aggregated": "apiserver"} {
		want := registryPath + "/" + repository + "@" + digestOf(repository)
		for _, pod := range podNames(ctx, "app.kubernetes.io/component="+component) {
			Expect(imageOf(ctx, pod)).To(Equal(want + " " + want))
		}
	}
}

// expectFormer checks that the API servers run the image of the release before.
func expectFormer(ctx context.Context) {
	GinkgoHelper()
	for _, pod := range podNames(ctx, facade) {
		Expect(imageOf(ctx, pod)).To(HavePrefix("ghcr.io/paddock-health/apiserver:"))
	}
}

// imageOf is the image that a pod asks for, and that which runs.
func imageOf(ctx context.Context, pod string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.spec.containers[0].image} {.status.containerStatuses[0].imageID}")
}

// describeUpgrade are the specs of the upgrade from the release before, which is installed with the Sites oak and elm.
func describeUpgrade() {
	It("is upgraded from the release before without a failed request, rolled back, and upgraded again", func(ctx SpecContext) {
		oak, elm := newClient(ctx, "oak"), newClient(ctx, "elm")
		for _, site := range []*client{oak, elm} {
			Eventually(ctx, func() (int, error) {
				status, _, err := site.put(ctx, "rover", "Former")
				return status, err
			}).Should(Or(Equal(http.StatusCreated), Equal(http.StatusOK)))
		}
		expectFormer(ctx)
		for path, method := range map[string]string{"$export": http.MethodGet, "patient/rover/$purge": http.MethodPost} {
			status, _, err := oak.send(ctx, method, path, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(status).To(Or(Equal(http.StatusNotFound), Equal(http.StatusMethodNotAllowed)), path)
		}
		steps := []struct {
			name string
			do   func()
		}{
			{"upgrade", func() { upgrade(ctx); expectPushed(ctx) }},
			{"rollback", func() { helm(ctx, "rollback", "paddock", "1", "--wait", "--timeout", "4m"); expectFormer(ctx) }},
			{"upgrade-again", func() { upgrade(ctx); expectPushed(ctx) }},
		}
		for _, step := range steps {
			By(step.name)
			loads := []*load{startLoad(ctx, oak, step.name), startLoad(ctx, elm, step.name)}
			for _, l := range loads {
				l.awaitMore(ctx)
			}
			began := time.Now()
			step.do()
			for _, l := range loads {
				l.awaitMore(ctx)
				l.verify(ctx)
			}
			for _, l := range loads {
				Expect(l.failures).To(BeEmpty(), step.name)
			}
			AddReportEntry(step.name, fmt.Sprintf("took %s", time.Since(began).Round(time.Second)), ReportEntryVisibilityAlways)
			for _, site := range []*client{oak, elm} {
				Expect(site.family(ctx, "rover")).To(Equal("Former"))
			}
		}
		awaitSites(ctx, "oak", "elm")
		history := kubectl(ctx, "-n", namespace, "get", "secrets", "-l", "owner=helm", "-o", "name")
		Expect(strings.Count(history, "\n")).To(Equal(4), "installed, upgraded, rolled back, upgraded")
	}, NodeTimeout(10*time.Minute))
}
