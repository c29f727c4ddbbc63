package chart_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// newField is one that the chart's release before did not have, for the sake of the test.
const newField = "timeZone"

// formerSites are Sites in the version that the chart before has. kubectl caches the preferred version, and
// gets 404 for v1beta1 after a rollback until it discovers versions again.
const formerSites = "sites.v1alpha1.paddock.health"

// learns is more than kube-apiserver takes to serve by another definition.
const learns = time.Minute

// describeUpgrade are the specs of a release that adds a field to Sites. The chart is installed.
func describeUpgrade() {
	var before string
	BeforeAll(func() { before = earlierChart() })

	upgrade := func(ctx context.Context, chart string) {
		GinkgoHelper()
		run(ctx, "helm", "upgrade", release, chart, "--namespace", namespace, "--reuse-values")
	}
	patch := func(ctx context.Context, spec string, more ...string) (string, error) {
		return try(ctx, "kubectl", append([]string{"patch", formerSites, "oak", "--namespace", "clinic-upgraded", "--type", "merge", "--patch", `{"spec":` + spec + `}`}, more...)...)
	}
	// known tells kubectl's word on the field, without a write.
	known := func(ctx context.Context) func() (string, error) {
		return func() (string, error) { return patch(ctx, `{"`+newField+`":"Australia/Perth"}`, "--dry-run=server") }
	}
	field := func(ctx context.Context) func() string {
		return func() string {
			return run(ctx, "kubectl", "get", formerSites, "oak", "--namespace", "clinic-upgraded", "--output", "jsonpath={.spec."+newField+"}")
		}
	}

	It("keeps the key of page tokens where the chart before has made it", func(ctx SpecContext) {
		expectKey := func(want []byte) {
			GinkgoHelper()
			Expect(pageTokenKeeper().Keep(ctx)).To(Succeed())
			Expect(secret(ctx, pageTokenSecret).Data).To(HaveKeyWithValue("key", want))
		}
		upgrade(ctx, before)
		run(ctx, "kubectl", "delete", "secret", pageTokenSecret, "--namespace", namespace) // as if this release had never been there
		key := secret(ctx, formerPageTokenSecret).Data["key"]
		Expect(key).To(HaveLen(44))
		upgrade(ctx, before)
		former := run(ctx, "kubectl", "get", "secrets", "--namespace", namespace, "--selector", "owner=helm,status=deployed", "--output", "jsonpath={.items[*].metadata.labels.version}")
		upgrade(ctx, chartDir)
		Expect(run(ctx, "kubectl", "get", "secret", formerPageTokenSecret, "--namespace", namespace, "--ignore-not-found")).To(BeEmpty())
		expectKey(key)
		upgrade(ctx, chartDir)
		expectKey(key)

		By("and through a rollback to that chart, with those of calendars")
		feed := secret(ctx, pageTokenSecret).Data["feed"]
		Expect(feed).NotTo(BeEmpty())
		run(ctx, "helm", "rollback", release, former, "--namespace", namespace)
		Expect(secret(ctx, formerPageTokenSecret).Data["key"]).To(Equal(key))
		// A controller of this release may still run. It must not create the Secret again, because Helm would refuse it.
		Expect(pageTokenKeeper().Keep(ctx)).To(Succeed())
		upgrade(ctx, chartDir)
		expectKey(key)
		Expect(secret(ctx, pageTokenSecret).Data).To(HaveKeyWithValue("feed", feed))
	}, NodeTimeout(2*time.Minute))

	It("keeps the rights of API servers through a rollback, until they are replaced", func(ctx SpecContext) {
		rights := func() string {
			return normalizeRights(run(ctx, "kubectl", "auth", "can-i", "--list", "--as", "system:serviceaccount:"+namespace+":paddock-apiserver"))
		}
		const added = "auditsegments.records.paddock.health"
		upgrade(ctx, before)
		run(ctx, "kubectl", "delete", "clusterrole,clusterrolebinding", "paddock-apiserver-0.2") // as if this release had never been there
		Eventually(rights).WithTimeout(learns).ShouldNot(ContainSubstring(added))
		upgrade(ctx, chartDir)
		Eventually(rights).WithTimeout(learns).Should(ContainSubstring(added))
		upgraded := rights()
		run(ctx, "helm", "rollback", release, "--namespace", namespace)
		Consistently(rights).WithTimeout(2 * time.Second).Should(Equal(upgraded))
		upgrade(ctx, chartDir)
	}, NodeTimeout(2*time.Minute))

	It("brings new fields with an upgrade", func(ctx SpecContext) {
		upgrade(ctx, before)
		run(ctx, "kubectl", "create", "namespace", "clinic-upgraded")
		manifest := filepath.Join(GinkgoT().TempDir(), "site.yaml")
		text := "apiVersion: paddock.health/v1alpha1\nkind: Site\nmetadata: {name: oak, namespace: clinic-upgraded}\nspec: {displayName: Oak}\n"
		Expect(os.WriteFile(manifest, []byte(text), 0o600)).To(Succeed())
		run(ctx, "kubectl", "create", "--filename", manifest)
		Eventually(known(ctx)).WithTimeout(learns).Should(ContainSubstring(`unknown field "spec.` + newField + `"`))
		upgrade(ctx, chartDir)
		Eventually(known(ctx)).WithTimeout(learns).ShouldNot(ContainSubstring("unknown field"))
		Expect(patch(ctx, `{"`+newField+`":"Australia/Melbourne"}`)).To(ContainSubstring("patched"))
		Expect(field(ctx)()).To(Equal("Australia/Melbourne"))
	}, NodeTimeout(2*time.Minute))

	It("hides them with a rollback, and shows them again where nobody wrote meanwhile", func(ctx SpecContext) {
		run(ctx, "helm", "rollback", release, "--namespace", namespace)
		Eventually(field(ctx)).WithTimeout(learns).Should(BeEmpty())
		run(ctx, "helm", "rollback", release, "--namespace", namespace)
		Eventually(field(ctx)).WithTimeout(learns).Should(Equal("Australia/Melbourne"))
	}, NodeTimeout(2*time.Minute))

	It("drops them from what is written after a rollback", func(ctx SpecContext) {
		run(ctx, "helm", "rollback", release, "--namespace", namespace)
		Eventually(field(ctx)).WithTimeout(learns).Should(BeEmpty())
		Expect(patch(ctx, `{"displayName":"Oak Street"}`)).To(ContainSubstring("patched"))
		upgrade(ctx, chartDir)
		Eventually(known(ctx)).WithTimeout(learns).ShouldNot(ContainSubstring("unknown field"))
		Expect(field(ctx)()).To(BeEmpty())
		Expect(run(ctx, "kubectl", "get", "site", "oak", "--namespace", "clinic-upgraded", "--output", "jsonpath={.spec.displayName}")).To(Equal("Oak Street"))
	}, NodeTimeout(2*time.Minute))

	It("keeps SiteMoves and their phase through a rollback to a release that has none", func(ctx SpecContext) {
		manifest := filepath.Join(GinkgoT().TempDir(), "move.yaml")
		text := "apiVersion: paddock.health/v1alpha1\nkind: SiteMove\nmetadata: {name: out, namespace: clinic-upgraded}\n" +
			"spec: {siteName: oak, to: {type: Postgres, postgres: {external: {secretRef: {name: oak-db}}}}}\n"
		Expect(os.WriteFile(manifest, []byte(text), 0o600)).To(Succeed())
		run(ctx, "kubectl", "create", "--filename", manifest)
		run(ctx, "kubectl", "patch", "sitemove", "out", "--namespace", "clinic-upgraded", "--subresource", "status", "--type", "merge", "--patch", `{"status":{"phase":"Switched","direction":"Forward"}}`)
		phase := func() string {
			return run(ctx, "kubectl", "get", "sitemove", "out", "--namespace", "clinic-upgraded", "--output", "jsonpath={.spec.siteName} {.status.phase}")
		}
		upgrade(ctx, before)
		Expect(phase()).To(Equal("oak Switched"))
		upgrade(ctx, chartDir)
		Expect(phase()).To(Equal("oak Switched"))
	}, NodeTimeout(2*time.Minute))
}

// formerPageTokenSecret is the Secret in which the chart of 0.1.0 made the key of page tokens.
const formerPageTokenSecret = "paddock-page-token"

// earlierChart is a copy of the chart whose Sites have one field less. As the chart of 0.1.0, it makes the key of page
// tokens by itself, has no SiteMoves, and its API servers have fewer rights.
func earlierChart() string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "paddock")
	Expect(os.CopyFS(dir, os.DirFS(chartDir))).To(Succeed())
	for _, file := range []string{"templates/page-token.yaml", "files/rbac/apiserver_role.yaml", "files/rbac/apiserver_role_0_2.yaml", "files/crd/paddock.health_sitemoves.yaml"} {
		Expect(os.Remove(filepath.Join(dir, filepath.FromSlash(file)))).To(Succeed())
	}
	Expect(os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "chart-0.1.0")))).To(Succeed())
	names := filepath.Join(dir, "templates", "_names.tpl")
	helpers, err := os.ReadFile(names)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(helpers)).To(ContainSubstring(pageTokenSecret))
	Expect(os.WriteFile(names, []byte(strings.ReplaceAll(string(helpers), pageTokenSecret, formerPageTokenSecret)), 0o600)).To(Succeed())
	path := filepath.Join(dir, "files", "crd", "paddock.health_sites.yaml")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var definition map[string]any
	Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
	versions, found, err := unstructured.NestedSlice(definition, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	versions = versions[:1] // the chart before has v1alpha1 only
	fields := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", newField}
	version, ok := versions[0].(map[string]any)
	Expect(ok).To(BeTrue())
	_, found, err = unstructured.NestedMap(version, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "Sites have no field %s", newField)
	unstructured.RemoveNestedField(version, fields...)
	Expect(unstructured.SetNestedSlice(definition, versions, "spec", "versions")).To(Succeed())
	text, err = yaml.Marshal(definition)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
	return dir
}
