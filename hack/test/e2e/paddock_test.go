//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

const (
	namespace = "paddock-system"
	nodeName  = "node"
	// facade selects the pods of the API servers behind the ingress.
	facade = "app.kubernetes.io/component=facade"
)

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

// awaitSites returns when the sites are Ready.
func awaitSites(ctx context.Context, sites ...string) {
	GinkgoHelper()
	for _, site := range sites {
		output, err := node.Kubectl(ctx, "-n", "clinic-"+site, "wait", "--for=condition=Ready", "--timeout=3m", "site/"+site)
		if err != nil {
			state, _ := node.Kubectl(ctx, "-n", "clinic-"+site, "get", "site", site, "-o", "jsonpath={.status.conditions}")
			Fail(fmt.Sprintf("%v\n%s\n%s\n%s", err, output, state, podsOf(ctx, "clinic-"+site)))
		}
	}
}

// installIngress starts the ingress controller, with a certificate for the hosts.
func installIngress(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "create", "namespace", namespace)
	kubectl(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	certFile, keyFile, err := node.Cluster.ServingCertificate(host, []string{host, "*.clinics.e2e.test"})
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "-n", namespace, "create", "secret", "tls", "fhir-tls", "--cert", certFile, "--key", keyFile)
	apply(ctx, "ingress.yaml")
}

// Every spec counts on those before it: they are one story, of an installation's life.
var _ = Describe("The chart", Ordered, func() {
	var oak, elm *client

	BeforeAll(func(ctx SpecContext) {
		publishRelease(ctx)
		installIngress(ctx)
		installFormer(ctx)
		Expect(localpaddock.AwaitPolicies(ctx, node.Cluster)).To(Succeed())
		kubectl(ctx, "-n", "ingress", "rollout", "status", "--timeout=2m", "deployment/skipper")
	}, NodeTimeout(6*time.Minute))

	It("makes sites Ready", func(ctx SpecContext) {
		apply(ctx, "sites.yaml")
		apply(ctx, "editors.yaml")
		awaitSites(ctx, "oak", "elm")
		AddReportEntry("kubectl get sites -A", "\n"+kubectl(ctx, "get", "sites", "-A"), ReportEntryVisibilityAlways)
		oak, elm = newClient(ctx, "oak"), newClient(ctx, "elm")
	}, NodeTimeout(5*time.Minute))

	describeUpgrade()

	It("serves them through the ingress, by TLS", func(ctx SpecContext) {
		for _, site := range []*client{oak, elm} {
			Eventually(ctx, func() (int, error) {
				status, _, err := site.put(ctx, "rex", "Smith")
				return status, err
			}).Should(Or(Equal(http.StatusCreated), Equal(http.StatusOK))) // a request without a response may have created it
			Expect(site.family(ctx, "rex")).To(Equal("Smith"))
		}
	})

	It("serves one under a host of its own, by TLS, and no other there", func(ctx SpecContext) {
		expose := func(exposure string) {
			kubectl(ctx, "-n", "clinic-oak", "patch", "site", "oak", "--type=merge", "--patch", `{"spec":{"exposure":`+exposure+`}}`)
		}
		search := func(c *client) func() (string, error) {
			return func() (string, error) {
				status, answer, err := c.send(ctx, http.MethodGet, "patient?_id=rex", "")
				return fmt.Sprintf("%d %s", status, answer), err
			}
		}
		own := oak.at("oak.clinics.e2e.test", "oak")
		// Without an Ingress the ingress controller knows neither the path nor a certificate.
		served := func() bool {
			answer, err := search(own)()
			return err == nil && !strings.HasPrefix(answer, "404")
		}
		Expect(served()).To(BeFalse())
		expose(`{"ingress":{"host":"fhir.elsewhere.test"}}`)
		kubectl(ctx, "-n", "clinic-oak", "wait", "--for=jsonpath={.status.conditions[?(@.type==\"Exposed\")].reason}=HostNotAllowed", "site/oak", "--timeout=1m")
		expose(`{"ingress":{"host":"oak.clinics.e2e.test"}}`)
		kubectl(ctx, "-n", "clinic-oak", "wait", "--for=condition=Exposed", "site/oak", "--timeout=1m")
		Eventually(ctx, search(own)).Should(ContainSubstring(own.base + "patient/rex"))
		// Another API server may see the exposure later.
		Eventually(ctx, search(oak)).Should(ContainSubstring(own.base+"patient/rex"), "under the common host too, with links to its own")
		status, answer, err := elm.at("oak.clinics.e2e.test", "elm").send(ctx, http.MethodGet, "patient?_id=rex", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(string(answer)).NotTo(ContainSubstring("OperationOutcome"), "it is the ingress controller that has no way there")

		By("and no longer when it asks for none")
		expose("null")
		Eventually(ctx, served).Should(BeFalse())
		Eventually(ctx, search(oak)).Should(ContainSubstring(oak.base + "patient/rex"))
		Expect(kubectl(ctx, "-n", namespace, "get", "ingresses", "-o", "name")).To(Equal("ingress.networking.k8s.io/paddock-facade\n"))
	}, NodeTimeout(5*time.Minute))

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

	It("loses no write when an API server is deleted", func(ctx SpecContext) {
		disturb(ctx, []*client{oak, elm}, "deleted", func() {
			kubectl(ctx, "-n", namespace, "delete", "pod", "--wait=false", podNames(ctx, facade)[0])
		})
		kubectl(ctx, "-n", namespace, "rollout", "status", "--timeout=2m", "deployment/paddock-facade")
	}, NodeTimeout(3*time.Minute))

	It("loses no write when an API server is killed", func(ctx SpecContext) {
		disturb(ctx, []*client{oak, elm}, "killed", func() { kill(ctx, namespace, podNames(ctx, facade)[0]) })
	}, NodeTimeout(3*time.Minute))

	It("loses no write when a site's Postgres is killed", func(ctx SpecContext) {
		disturb(ctx, []*client{elm}, "database", func() { kill(ctx, "clinic-elm", "paddock-postgres-0") })
	}, NodeTimeout(3*time.Minute))

	It("lets a site's Postgres be drained from a node", func(ctx SpecContext) {
		kubectl(ctx, "drain", nodeName, "--pod-selector=app.kubernetes.io/name=postgres", "--delete-emptydir-data", "--timeout=1m")
		kubectl(ctx, "uncordon", nodeName)
		Eventually(ctx, func() (string, error) { return elm.family(ctx, "rex") }).Should(Equal("Smith"))
	}, NodeTimeout(3*time.Minute))

	describeDump()

	describeBackup()

	describeFullVolume()

	describeCloudNativePG()

	describeEvents()

	It("goes on when the controllers are killed, and no request fails", func(ctx SpecContext) {
		loads := []*load{startLoad(ctx, oak, "controllers"), startLoad(ctx, elm, "controllers")}
		for _, pod := range podNames(ctx, "app.kubernetes.io/component=controller") {
			kill(ctx, namespace, pod)
		}
		kubectl(ctx, "-n", "clinic-oak", "patch", "site", "oak", "--type=merge", "--patch", `{"spec":{"displayName":"Oak Street Clinic"}}`)
		generation := kubectl(ctx, "-n", "clinic-oak", "get", "site", "oak", "-o", "jsonpath={.metadata.generation}")
		Eventually(ctx, func() (string, error) {
			return node.Kubectl(ctx, "-n", "clinic-oak", "get", "site", "oak", "-o", "jsonpath={.status.observedGeneration}")
		}).Should(Equal(generation))
		for _, l := range loads {
			l.awaitMore(ctx)
			l.verify(ctx)
			Expect(l.failures).To(BeEmpty())
		}
	}, NodeTimeout(3*time.Minute))

	It("refuses a second site of a namespace as it is applied, and none when no controller answers", func(ctx SpecContext) {
		try := func(namespace, name string) (string, error) {
			return node.Kubectl(ctx, "-n", namespace, "apply", "--server-side", "--dry-run=server", "--filename", siteFile(namespace, name))
		}
		Eventually(ctx, func() error {
			_, err := try("clinic-oak", "second")
			return err
		}).Should(MatchError(ContainSubstring("metadata.namespace: NamespaceOccupied")))
		kubectl(ctx, "-n", namespace, "scale", "deployment", "paddock-controller", "--replicas=0")
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "-n", namespace, "scale", "deployment", "paddock-controller", "--replicas=2")
			kubectl(ctx, "-n", namespace, "rollout", "status", "--timeout=2m", "deployment/paddock-controller")
		}, NodeTimeout(3*time.Minute))
		Eventually(ctx, func() error {
			_, err := try("clinic-oak", "second")
			return err
		}).Should(Succeed())
	}, NodeTimeout(3*time.Minute))

	It("is upgraded to other settings, and back, without a failed request", func(ctx SpecContext) {
		loads := []*load{startLoad(ctx, oak, "settings"), startLoad(ctx, elm, "settings")}
		awaitMore := func() {
			for _, l := range loads {
				l.awaitMore(ctx)
			}
		}
		leaveRoom(ctx, resource.MustParse("400m")) // too little for a new pod of each Deployment
		awaitMore()
		upgrade(ctx, "--set", "logLevel=warn")
		awaitMore()
		Expect(facadeArguments(ctx)).To(ContainSubstring("warn"))
		helm(ctx, "rollback", "paddock", "--wait", "--timeout", "4m")
		awaitMore()
		Expect(facadeArguments(ctx)).NotTo(ContainSubstring("warn"))
		Expect(kubectl(ctx, "get", "events", "-A", "--field-selector=reason=Preempted", "-o", "name")).
			To(BeEmpty(), "new pods of the chart wait for room, and do not take that of a site's database")
		for _, l := range loads {
			l.verify(ctx)
			Expect(l.failures).To(BeEmpty())
		}
	}, NodeTimeout(6*time.Minute))

	It("keeps the namespace of retained records", func(ctx SpecContext) {
		output, err := node.Kubectl(ctx, "delete", "namespace", "clinic-oak")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("holds the records of a Site with deletionPolicy Retain"))
	})

	It("is uninstalled, and leaves sites and records", func(ctx SpecContext) {
		kubectl(ctx, "-n", "clinic-elm", "delete", "site", "elm", "--timeout=1m")
		helm(ctx, "uninstall", "paddock", "--wait", "--timeout", "2m")
		Expect(kubectl(ctx, "get", "customresourcedefinitions", "-o", "name")).To(ContainSubstring("sites.paddock.health"))
		Expect(kubectl(ctx, "get", "sites", "-A", "-o", "name")).To(Equal("site.paddock.health/oak\n"))
		Expect(kubectl(ctx, "get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/part-of=paddock", "-o", "name")).
			To(Equal("clusterrole.rbac.authorization.k8s.io/paddock-apiserver-0.2\nclusterrolebinding.rbac.authorization.k8s.io/paddock-apiserver-0.2\n"),
				"only what docs/guides/install.md says remains")
		Expect(kubectl(ctx, "get", "records.records.paddock.health", "-A", "-o", "name", "--chunk-size=500")).NotTo(BeEmpty())
		Expect(kubectl(ctx, "-n", "clinic-elm", "get", "pods", "-o", "jsonpath={.items[*].status.phase}")).To(Equal("Running"),
			func() string { return podsOf(ctx, "clinic-elm") })
	}, NodeTimeout(3*time.Minute))

	It("finds the records when it is installed, and a deleted site applied, again", func(ctx SpecContext) {
		install(ctx)
		expectPushed(ctx)
		apply(ctx, "sites.yaml")
		awaitSites(ctx, "oak", "elm")
		for _, site := range []*client{oak, elm} {
			Eventually(ctx, func() (string, error) { return site.family(ctx, "rex") }).Should(Equal("Smith"))
		}
	}, NodeTimeout(5*time.Minute))

	It("lets go of records on request, even of a dead database", func(ctx SpecContext) {
		kubectl(ctx, "-n", "clinic-elm", "scale", "statefulset", "paddock-postgres", "--replicas=0")
		for _, site := range []string{"oak", "elm"} {
			kubectl(ctx, "-n", "clinic-"+site, "patch", "site", site, "--type=merge", "--patch", `{"spec":{"deletionPolicy":"Delete"}}`)
		}
		for _, site := range []string{"oak", "elm"} {
			Eventually(ctx, func() error {
				_, err := node.Kubectl(ctx, "delete", "namespace", "clinic-"+site, "--ignore-not-found", "--timeout=1m")
				return err
			}).Should(Succeed())
		}
		Eventually(ctx, func() (string, error) {
			return node.Kubectl(ctx, "get", "siteclaims,records.records.paddock.health", "-A", "-o", "name")
		}).
			Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))
})

// disturb does something while clients write, and returns when all that was acknowledged was
// read again.
func disturb(ctx context.Context, clients []*client, name string, do func()) {
	GinkgoHelper()
	var loads []*load
	for _, c := range clients {
		loads = append(loads, startLoad(ctx, c, name))
	}
	for _, l := range loads {
		l.awaitMore(ctx)
	}
	do()
	for _, l := range loads {
		l.awaitMore(ctx)
		l.verify(ctx)
	}
}

// leaveRoom makes a pod that requests all CPU of the node except free, until the spec ends. No pod preempts it.
func leaveRoom(ctx context.Context, free resource.Quantity) {
	GinkgoHelper()
	machine, err := clients.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	pods, err := clients.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	Expect(err).NotTo(HaveOccurred())
	room := machine.Status.Allocatable.Cpu().DeepCopy()
	room.Sub(free)
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			room.Sub(*container.Resources.Requests.Cpu())
		}
	}
	if room.Sign() <= 0 {
		return
	}
	filler := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "filler"},
		Spec: corev1.PodSpec{
			PriorityClassName: "system-cluster-critical",
			Containers: []corev1.Container{{Name: "pause", Image: pauseImage, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: room},
			}}},
		},
	}
	_, err = clients.CoreV1().Pods("kube-system").Create(ctx, filler, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "-n", "kube-system", "delete", "pod", "filler", "--now") })
	kubectl(ctx, "-n", "kube-system", "wait", "--for=condition=Ready", "--timeout=1m", "pod/filler")
}

// kill ends the first container of a pod by SIGKILL, and returns when it runs again.
func kill(ctx context.Context, namespace, pod string) {
	GinkgoHelper()
	id := func() (string, error) {
		return node.Kubectl(ctx, "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	}
	before, err := id()
	Expect(err).NotTo(HaveOccurred())
	Expect(node.KillContainer(ctx, before)).To(Succeed())
	Eventually(ctx, id).ShouldNot(Equal(before))
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=Ready", "--timeout=1m", "pod/"+pod)
}

// siteFile is a manifest of a Site.
func siteFile(namespace, name string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "site.yaml")
	text := fmt.Sprintf("apiVersion: paddock.health/v1alpha1\nkind: Site\nmetadata: {name: %s, namespace: %s}\n", name, namespace)
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

// facadeArguments are the flags of the facade's container.
func facadeArguments(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", namespace, "get", "deployment", "paddock-facade", "-o", "jsonpath={.spec.template.spec.containers[0].args}")
}

// podNames are the names of the pods of the release that the label selects, without those that are ending.
func podNames(ctx context.Context, label string) []string {
	GinkgoHelper()
	pods, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	Expect(names).NotTo(BeEmpty(), "no pod of %s has the label %s", namespace, label)
	return names
}
