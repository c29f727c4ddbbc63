package chart_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kustomized are the Deployments that kubectl would apply of a folder.
func kustomized(ctx context.Context, folder string) map[string]*appsv1.Deployment {
	GinkgoHelper()
	rendered, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "kustomize", folder).Output()
	Expect(err).NotTo(HaveOccurred())
	found := map[string]*appsv1.Deployment{}
	for _, object := range objectsOf[appsv1.Deployment](string(rendered), "Deployment") {
		found[object.Name] = object
	}
	return found
}

// expectAdmitted makes pods of Deployments, as a dry run, in a namespace that admits restricted ones only.
func expectAdmitted(ctx context.Context, c client.Client, all ...*appsv1.Deployment) {
	GinkgoHelper()
	Expect(all).NotTo(BeEmpty())
	for _, deployment := range all {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment.Name, Labels: deployment.Spec.Template.Labels},
			Spec:       deployment.Spec.Template.Spec,
		}
		Expect(c.Create(ctx, pod, client.DryRunAll)).To(Succeed(), deployment.Name)
	}
}

// named are the kinds and names of what manifests hold.
func named(manifests string) []string {
	GinkgoHelper()
	var all []string
	for _, document := range documents(manifests) {
		var object metav1.PartialObjectMetadata
		Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
		all = append(all, object.Kind+" "+object.Name)
	}
	return all
}

var _ = Describe("Kustomize", func() {
	It("and the chart install the same", func(ctx SpecContext) {
		var want []string
		for _, folder := range []string{"default", "aggregation"} {
			rendered, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "kustomize", filepath.Join(root, "config", folder)).Output()
			Expect(err).NotTo(HaveOccurred())
			want = append(want, named(string(rendered))...)
		}
		// The chart is installed into a namespace that is there. The Secrets that the controller fills are
		// in it only so that they go with the release; without the chart the controller creates them.
		want = append(want, "Secret paddock-apiserver-tls", "Secret paddock-authority", "Secret paddock-controller-tls", "Secret "+pageTokenSecret)
		want = slices.DeleteFunc(want, func(name string) bool { return name == "Namespace "+namespace })
		got := named(run(ctx, "helm", "template", release, chartDir, "--namespace", namespace, "--skip-tests"))
		Expect(got).To(ConsistOf(want))
	})

	It("makes of the guide's overlay what the guide says", func(ctx SpecContext) {
		found := kustomized(ctx, filepath.Join("testdata", "overlay"))
		Expect(found).To(HaveLen(3))
		Expect(found["paddock-delivery"].Spec.Template.Spec.Containers[0].Image).To(HavePrefix("registry.example.org/mirror/apiserver@"))
		for name, image := range map[string]string{
			"paddock-controller": "registry.example.org/mirror/controller@sha256:2222222222222222222222222222222222222222222222222222222222222222",
			"paddock-facade":     "registry.example.org/mirror/apiserver@sha256:1111111111111111111111111111111111111111111111111111111111111111",
		} {
			container := found[name].Spec.Template.Spec.Containers[0]
			Expect(container.Image).To(Equal(image))
			Expect(container.Args).To(ContainElement("--public-url=https://records.example.org"))
			Expect(container.Args).NotTo(ContainElement("--public-url=https://fhir.example.org"))
		}
	})
})
