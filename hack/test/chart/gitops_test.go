package chart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// syncs is how often the manifests are applied.
const syncs = 10

// describeGitOps is the spec of a tool that renders the chart without a cluster, and applies it again and again. A release of
// Helm is installed before.
func describeGitOps() {
	It("changes nothing when it is rendered and applied again and again, and calendar addresses still work", func(ctx SpecContext) {
		run(ctx, "helm", "uninstall", release, "--namespace", namespace)
		file := cluster.File("rendered.yaml")
		flags := []string{"--server-side", "--force-conflicts", "--field-manager=gitops", "--filename", file}
		sync := func() {
			rendered := run(ctx, "helm", "template", release, chartDir, "--namespace", namespace, "--skip-tests")
			Expect(os.WriteFile(file, []byte(rendered), 0o600)).To(Succeed())
			run(ctx, "kubectl", append([]string{"apply"}, flags...)...)
		}
		sync()
		// The controller creates keys and certificates, and sets the authority of its own callers.
		Expect(keeper(ctx).Keep(ctx)).To(Succeed())
		Expect(pageTokenKeeper().Keep(ctx)).To(Succeed())
		clinic := startClinic(ctx)
		address := clinic.newCalendar(ctx)
		expectCalendar(ctx, address)
		before := applied(ctx, file)
		Expect(len(before)).To(BeNumerically(">", 60))
		Expect(secret(ctx, pageTokenSecret).Data).To(HaveKey("feed"), "calendar addresses are signed by this key")
		for range syncs {
			sync()
			Expect(applied(ctx, file)).To(Equal(before))
			expectCalendar(ctx, address)
		}
		run(ctx, "kubectl", append([]string{"diff"}, flags...)...) // fails if there is a difference
		clinic.restart(ctx)
		expectCalendar(ctx, address)
	}, NodeTimeout(5*time.Minute))
}

// applied has the state of each object of a file. Every write changes it, except those of a status.
func applied(ctx context.Context, file string) map[string]string {
	GinkgoHelper()
	var list unstructured.UnstructuredList
	Expect(json.Unmarshal([]byte(run(ctx, "kubectl", "get", "--filename", file, "--output", "json")), &list)).To(Succeed())
	states := map[string]string{}
	for _, object := range list.Items {
		state := fmt.Sprint("resourceVersion ", object.GetResourceVersion())
		if _, reports := object.Object["status"]; reports { // kube-apiserver itself writes this one
			unstructured.RemoveNestedField(object.Object, "status")
			unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
			unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
			text, err := json.Marshal(object.Object)
			Expect(err).NotTo(HaveOccurred())
			state = string(text)
		}
		states[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = state
	}
	return states
}
