//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const namespace = "paddock-system"

// helm runs helm as an administrator.
func helm(ctx context.Context, args ...string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "helm"), append([]string{"--kubeconfig", node.Cluster.Kubeconfig(), "-n", namespace}, args...)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		Fail(fmt.Sprintf("helm %v: %v\n%s\n%s", args, err, output, podsOf(ctx, namespace)))
	}
}

// podsOf tells the state of a namespace's pods, for an error message.
func podsOf(ctx context.Context, namespace string) string {
	pods, _ := node.Kubectl(ctx, "-n", namespace, "get", "pods", "-o", "wide")
	events, _ := node.Kubectl(ctx, "-n", namespace, "get", "events", "--field-selector=type=Warning")
	return pods + events
}

// install installs the chart, or upgrades it, and returns when its programs are ready.
func install(ctx context.Context, args ...string) {
	GinkgoHelper()
	helm(ctx, append([]string{
		"upgrade", "--install", "paddock", filepath.Join(sourceDir, "charts", "paddock"),
		"--values", filepath.Join("manifests", "values.yaml"), "--wait", "--timeout", "4m",
	}, args...)...)
}

// awaitSites returns when both sites are Ready.
func awaitSites(ctx context.Context) {
	GinkgoHelper()
	for _, site := range []string{"oak", "elm"} {
		output, err := node.Kubectl(ctx, "-n", "clinic-"+site, "wait", "--for=condition=Ready", "--timeout=3m", "site/"+site)
		if err != nil {
			state, _ := node.Kubectl(ctx, "-n", "clinic-"+site, "get", "site", site, "-o", "jsonpath={.status.conditions}")
			Fail(fmt.Sprintf("%v\n%s\n%s\n%s", err, output, state, podsOf(ctx, "clinic-"+site)))
		}
	}
}

// installIngress starts the ingress controller, with a certificate for the host.
func installIngress(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "create", "namespace", namespace)
	kubectl(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	certFile, keyFile, err := node.Cluster.ServingCertificate(host, []string{host})
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "-n", namespace, "create", "secret", "tls", "fhir-tls", "--cert", certFile, "--key", keyFile)
	apply(ctx, "ingress.yaml")
}

// Every spec counts on those before it: they are one story, of an installation's life.
var _ = Describe("The chart", Ordered, func() {
	var oak, elm *client

	BeforeAll(func(ctx SpecContext) {
		installIngress(ctx)
		install(ctx)
		kubectl(ctx, "-n", "ingress", "rollout", "status", "--timeout=2m", "deployment/skipper")
	}, NodeTimeout(6*time.Minute))

	It("makes sites Ready", func(ctx SpecContext) {
		apply(ctx, "sites.yaml")
		apply(ctx, "editors.yaml")
		awaitSites(ctx)
		AddReportEntry("kubectl get sites -A", "\n"+kubectl(ctx, "get", "sites", "-A"), ReportEntryVisibilityAlways)
		oak, elm = newClient(ctx, "oak"), newClient(ctx, "elm")
	}, NodeTimeout(5*time.Minute))

	It("serves them through the ingress, by TLS", func(ctx SpecContext) {
		for _, site := range []*client{oak, elm} {
			Eventually(ctx, func() (int, error) { return site.put(ctx, "rex", "Smith") }).Should(Equal(http.StatusCreated))
			Expect(site.family(ctx, "rex")).To(Equal("Smith"))
		}
	})

	It("serves them by kubectl", func(ctx SpecContext) {
		for _, site := range []string{"oak", "elm"} {
			Eventually(ctx, func() (string, error) {
				return node.Kubectl(ctx, "-n", "clinic-"+site, "get", "patients.r4.fhir.paddock.health")
			}).
				Should(ContainSubstring("rex"))
		}
	})

	It("passes its own test", func(ctx SpecContext) {
		helm(ctx, "test", "paddock", "--timeout", "2m")
	}, NodeTimeout(3*time.Minute))

	It("loses no write when API servers are deleted", func(ctx SpecContext) {
		loads := []*load{startLoad(ctx, oak, "pods"), startLoad(ctx, elm, "pods")}
		for _, l := range loads {
			l.awaitMore(ctx)
		}
		kubectl(ctx, "-n", namespace, "delete", "pod", "--wait=false", firstPod(ctx, namespace, "app.kubernetes.io/component=facade"))
		kubectl(ctx, "-n", namespace, "rollout", "status", "--timeout=2m", "deployment/paddock-facade")
		for _, l := range loads {
			l.awaitMore(ctx)
			l.verify(ctx)
		}
	}, NodeTimeout(4*time.Minute))

	It("is upgraded under load", func(ctx SpecContext) {
		l := startLoad(ctx, oak, "upgrade")
		l.awaitMore(ctx)
		install(ctx, "--set", "logLevel=warn")
		l.awaitMore(ctx)
		l.verify(ctx)
		Expect(kubectl(ctx, "-n", namespace, "get", "deployment", "paddock-facade", "-o", "jsonpath={.spec.template.spec.containers[0].args}")).
			To(ContainSubstring("warn"))
	}, NodeTimeout(5*time.Minute))

	It("is uninstalled, and leaves sites and records", func(ctx SpecContext) {
		helm(ctx, "uninstall", "paddock", "--wait", "--timeout", "2m")
		Expect(kubectl(ctx, "get", "customresourcedefinitions", "-o", "name")).To(ContainSubstring("sites.paddock.health"))
		Expect(kubectl(ctx, "get", "sites", "-A", "-o", "name")).To(And(ContainSubstring("oak"), ContainSubstring("elm")))
		Expect(kubectl(ctx, "get", "records.records.paddock.health", "-A", "-o", "name")).NotTo(BeEmpty())
		Expect(kubectl(ctx, "-n", "clinic-elm", "get", "pods", "-o", "jsonpath={.items[*].status.phase}")).To(Equal("Running"))
	}, NodeTimeout(3*time.Minute))

	It("finds the records when it is installed again", func(ctx SpecContext) {
		install(ctx)
		awaitSites(ctx)
		for _, site := range []*client{oak, elm} {
			Eventually(ctx, func() (string, error) { return site.family(ctx, "rex") }).Should(Equal("Smith"))
		}
	}, NodeTimeout(5*time.Minute))
})

// firstPod is the name of a pod that the label selects.
func firstPod(ctx context.Context, namespace, label string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", namespace, "get", "pods", "--selector", label, "-o", "jsonpath={.items[0].metadata.name}")
}
