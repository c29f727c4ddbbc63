package upgrade_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

const namespace = "paddock-system"

var _ = Describe("A release", func() {
	It("has the same bytes, built in another folder", func() {
		read := func(dir string) string {
			text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		Expect(cmp.Diff(read(first), read(second))).To(BeEmpty())
		Expect(strings.Count(read(first), "\n")).To(BeNumerically(">=", 10))
	})

	It("verifies in the registry", func(ctx SpecContext) {
		run(ctx, "release", "verify", "-registry", registry.Address, "-version", release.Version, "-dir", first, "-key", key+".pub")
	}, NodeTimeout(5*time.Minute))

	It("serves a site by the programs in the registry", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		for _, program := range []string{"apiserver", "controller"} {
			Expect(registry.PullProgram(ctx, program, digests[program], filepath.Join(dir, program))).To(Succeed())
		}
		Expect(os.Symlink(filepath.Join(bin, "kubectl"), filepath.Join(dir, "kubectl"))).To(Succeed())
		paddock, err := localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: dir, SourceDir: root})
		Expect(err).NotTo(HaveOccurred())
		Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
		run(ctx, "kubectl", "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", "demo", "site/demo")
		token := cluster.File("token")
		Expect(os.WriteFile(token, []byte(run(ctx, "kubectl", "create", "token", "editor", "--namespace", "demo", "--audience", "paddock.health/demo/demo")), 0o600)).To(Succeed())
		check := exec.CommandContext(ctx, filepath.Join(dir, "apiserver"), "--check", paddock.URLs[0]+"/site/demo/fhir", "--check-token-file", token)
		out, err := check.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		version, err := exec.CommandContext(ctx, filepath.Join(dir, "apiserver"), "--version").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(string(version))).To(Equal("v" + release.Version))
	}, NodeTimeout(3*time.Minute))

	It("replaces the release before, is rolled back, removed and installed again, and keeps Sites", func(ctx SpecContext) {
		former, err := filepath.Glob(filepath.Join(filepath.Dir(first), "paddock-*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(former).To(HaveLen(1))
		run(ctx, "helm", "push", former[0], "oci://"+registry.Address+"/charts", "--plain-http")
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(former[0]), "paddock-"), ".tgz")
		pushed := "oci://" + registry.Address + "/charts/paddock@" + digests["charts/paddock"]
		images := func() string {
			return run(ctx, "kubectl", "get", "deployments", "--namespace", namespace, "--output", "jsonpath={.items[*].spec.template.spec.containers[*].image}")
		}
		// Definitions may be there, of the spec before.
		flags := []string{"--namespace", namespace, "--plain-http", "--take-ownership", "--force-conflicts", "--set", "admission.webhook=false"}
		helm := func(args ...string) { run(ctx, "helm", append(args, flags...)...) }

		helm("install", "paddock", "oci://"+registry.Address+"/charts/paddock", "--version", version, "--create-namespace")
		Expect(images()).To(ContainSubstring("apiserver:" + version))
		run(ctx, "kubectl", "create", "namespace", "clinic-oak")
		run(ctx, "kubectl", "apply", "--namespace", "clinic-oak", "--filename", site())
		helm("upgrade", "paddock", pushed)
		for _, image := range strings.Fields(images()) {
			Expect(image).To(Or(HaveSuffix("/apiserver@"+digests["apiserver"]), HaveSuffix("/controller@"+digests["controller"])))
		}
		run(ctx, "helm", "rollback", "paddock", "1", "--namespace", namespace)
		Expect(images()).To(ContainSubstring("apiserver:" + version))
		run(ctx, "helm", "uninstall", "paddock", "--namespace", namespace)
		Expect(images()).To(BeEmpty())
		Expect(run(ctx, "kubectl", "get", "site", "oak", "--namespace", "clinic-oak", "--output", "name")).To(ContainSubstring("site.paddock.health/oak"))
		helm("install", "paddock", pushed)
		Expect(images()).To(ContainSubstring("apiserver@" + digests["apiserver"]))
	}, NodeTimeout(5*time.Minute))
})

// site writes the manifest of a Site.
func site() string {
	GinkgoHelper()
	file := cluster.File("site.yaml")
	const manifest = "apiVersion: paddock.health/v1alpha1\nkind: Site\nmetadata: {name: oak}\nspec: {siteID: \"1042\"}\n"
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	return file
}
