package chart_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// newField is one that the chart's release before did not have, for the sake of the test.
const newField = "timeZone"

// learns is more than kube-apiserver takes to serve by another definition.
const learns = 20 * time.Second

// describeUpgrade are the specs of a release that adds a field to Sites. The chart is installed.
func describeUpgrade() {
	var before string
	BeforeAll(func() { before = earlierChart() })

	upgrade := func(ctx context.Context, chart string) {
		GinkgoHelper()
		run(ctx, "helm", "upgrade", release, chart, "--namespace", namespace, "--reuse-values")
	}
	patch := func(ctx context.Context, spec string, more ...string) (string, error) {
		return try(ctx, "kubectl", append([]string{"patch", "site", "oak", "--namespace", "clinic-upgraded", "--type", "merge", "--patch", `{"spec":` + spec + `}`}, more...)...)
	}
	// known tells kubectl's word on the field, without a write.
	known := func(ctx context.Context) func() (string, error) {
		return func() (string, error) { return patch(ctx, `{"`+newField+`":"Australia/Perth"}`, "--dry-run=server") }
	}
	field := func(ctx context.Context) func() string {
		return func() string {
			return run(ctx, "kubectl", "get", "site", "oak", "--namespace", "clinic-upgraded", "--output", "jsonpath={.spec."+newField+"}")
		}
	}

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
}

// earlierChart is a copy of the chart, whose Sites have one field less.
func earlierChart() string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "paddock")
	Expect(os.CopyFS(dir, os.DirFS(chartDir))).To(Succeed())
	path := filepath.Join(dir, "files", "crd", "paddock.health_sites.yaml")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var definition map[string]any
	Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
	versions, found, err := unstructured.NestedSlice(definition, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	Expect(versions).To(HaveLen(1))
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
