package chart_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// The programs run as processes beside a control plane of their own.
var _ = Describe("The programs", Ordered, func() {
	var (
		control *localcluster.Cluster
		paddock *localpaddock.Paddock
	)
	BeforeAll(func(ctx SpecContext) {
		var err error
		control, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(control.Stop)
		paddock, err = localpaddock.Start(ctx, control, localpaddock.Options{BinDir: bin, SourceDir: root, Aggregated: true})
		Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	}, NodeTimeout(5*time.Minute))

	It("pass what helm test does", func(ctx SpecContext) {
		manifests := testManifests(ctx)
		file := control.File("test.yaml")
		Expect(os.WriteFile(file, []byte(manifests), 0o600)).To(Succeed())
		_, err := paddock.Kubectl(ctx, "apply", "--filename", file)
		Expect(err).NotTo(HaveOccurred())
		token, err := paddock.Kubectl(ctx, "create", "token", "paddock-test", "--namespace", namespace, "--audience", "paddock.health/paddock-helm-test/helm-test")
		Expect(err).NotTo(HaveOccurred())
		tokenFile := control.File("test.token")
		Expect(os.WriteFile(tokenFile, token, 0o600)).To(Succeed())
		check := func(url string, more ...string) (string, error) {
			args := append([]string{"--check", url, "--check-token-file", tokenFile}, more...)
			out, err := exec.CommandContext(ctx, filepath.Join(bin, "apiserver"), args...).CombinedOutput()
			return string(out), err
		}
		out, err := check(paddock.URLs[0] + "/site/paddock-helm-test/fhir")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(strings.Count(out, ": done\n")).To(Equal(5), out)
		out, err = check(paddock.URLs[0]+"/site/no-such-site/fhir", "--check-timeout", "100ms")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("create a patient"))

		By("giving up at once on what stays")
		Expect(os.WriteFile(tokenFile, []byte("no-token\n"), 0o600)).To(Succeed())
		out, err = check(paddock.URLs[0]+"/site/paddock-helm-test/fhir", "--check-timeout", "1h")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("got status 401"), ContainSubstring("repeating the step would not help")))
		out, err = check("https"+strings.TrimPrefix(paddock.URLs[0], "http")+"/site/paddock-helm-test/fhir", "--check-timeout", "1h")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("HTTP response to HTTPS client"))
		_, err = paddock.Kubectl(ctx, "delete", "--wait", "--timeout=1m", "--namespace", "paddock-helm-test", "site/helm-test")
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(2*time.Minute))

	It("are as kustomize installs them what the restricted policy admits", func(ctx SpecContext) {
		c, err := client.New(control.Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		// The priority class that pods name has to be there. The aggregated API is registered already, elsewhere.
		for _, install := range []struct{ folder, dryRun string }{{"default", "none"}, {"aggregation", "server"}} {
			path := filepath.Join(root, "config", install.folder)
			_, err = paddock.Kubectl(ctx, "apply", "--server-side", "--dry-run="+install.dryRun, "--kustomize", path)
			Expect(err).NotTo(HaveOccurred())
			expectAdmitted(ctx, c, slices.Collect(maps.Values(kustomized(ctx, path)))...)
		}
	}, NodeTimeout(3*time.Minute))

	describeBackups(&control, &paddock)

	It("have every metric that an alert or the dashboard names", func(ctx SpecContext) {
		startSamples(ctx, paddock)
		read := func() string {
			return metrics(paddock.HealthURLs[0]) + metrics(paddock.ControllerURLs[0]) + metrics(paddock.DeliveryURLs[0])
		}
		Eventually(read).
			Within(time.Minute).ProbeEvery(100 * time.Millisecond). // webhooks are reported twice a minute
			Should(And(ContainSubstring("controller_runtime_reconcile_total"), ContainSubstring(`leader_election_master_status{name="paddock-controller"} 1`), ContainSubstring("paddock_webhooks{")))
		there := read()
		for _, name := range namedMetrics() {
			Expect(there).To(MatchRegexp(`(?m)^`+regexp.QuoteMeta(name)+`[ {]`), "there is no metric of this name")
		}
	}, NodeTimeout(2*time.Minute))

	It("have a runbook for each alert", func() {
		for _, rule := range alerts() {
			page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", rule.Alert+".md"))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(page)).To(HavePrefix("# " + rule.Alert + "\n"))
		}
	})
})

// startSamples makes a Site of each storage, for the metrics of Sites.
func startSamples(ctx context.Context, paddock *localpaddock.Paddock) {
	GinkgoHelper()
	postgres, err := localpostgres.Start(ctx, localpostgres.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(postgres.Stop)
	uri, err := postgres.CreateDatabase(ctx, "demo", "secret")
	Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{"samples", "samples/postgres"} {
		Expect(paddock.Apply(ctx, filepath.Join("config", folder))).To(Succeed())
	}
	Expect(paddock.SetSecret(ctx, "demo-postgres", "demo-db", "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	for _, name := range []string{"demo", "demo-postgres"} {
		_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1m", "--namespace", name, "site/"+name)
		Expect(err).NotTo(HaveOccurred())
		_, err = paddock.Kubectl(ctx, "get", "patients.r4.fhir.paddock.health", "--namespace", name)
		Expect(err).NotTo(HaveOccurred())
	}
	hook := filepath.Join(GinkgoT().TempDir(), "webhook.yaml")
	Expect(os.WriteFile(hook, []byte(webhookManifest), 0o600)).To(Succeed())
	_, err = paddock.Kubectl(ctx, "apply", "--filename", hook)
	Expect(err).NotTo(HaveOccurred())
}

const webhookManifest = `apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: sample, namespace: demo}
spec: {eventType: user.created, url: "https://receiver.example.org/hook", active: true}
`

// testManifests are the objects of `helm test` but for its pod, which no node would run here.
func testManifests(ctx context.Context) string {
	GinkgoHelper()
	rendered := run(ctx, "helm", "template", release, chartDir, "--namespace", namespace, "--show-only", "templates/tests/site.yaml")
	var kept []string
	for _, document := range documents(rendered) {
		if !strings.Contains(document, "\nkind: Pod\n") {
			kept = append(kept, document)
		}
	}
	Expect(kept).To(HaveLen(5))
	return strings.Join(kept, "\n---\n")
}

// testPod is the pod of `helm test`.
func testPod(ctx context.Context, set ...string) *corev1.Pod {
	GinkgoHelper()
	rendered := run(ctx, "helm", "template", release, chartDir, "--namespace", namespace, "--show-only", "templates/tests/site.yaml", "--set", strings.Join(set, ","))
	pods := objectsOf[corev1.Pod](rendered, "Pod")
	Expect(pods).To(HaveLen(1))
	return pods[0]
}

func documents(manifests string) []string { return strings.Split(manifests, "\n---\n") }

// objectsOf are the objects of a kind among manifests.
func objectsOf[T any](manifests, kind string) []*T {
	GinkgoHelper()
	var found []*T
	for _, document := range documents(manifests) {
		var meta metav1.TypeMeta
		Expect(yaml.Unmarshal([]byte(document), &meta)).To(Succeed())
		if meta.Kind == kind {
			object := new(T)
			Expect(yaml.UnmarshalStrict([]byte(document), object)).To(Succeed())
			found = append(found, object)
		}
	}
	return found
}

// metrics is what a program shows, empty if it does not answer.
func metrics(address string) string {
	response, err := http.Get(address + "/metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

type alert struct {
	Alert, Expr string
}

func alerts() []alert {
	GinkgoHelper()
	source, err := os.ReadFile(filepath.Join(chartDir, "files", "monitoring", "alerts.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var rules struct {
		Groups []struct{ Rules []alert }
	}
	Expect(yaml.Unmarshal(source, &rules)).To(Succeed())
	var all []alert
	for _, group := range rules.Groups {
		all = append(all, group.Rules...)
	}
	Expect(all).NotTo(BeEmpty())
	return all
}

// namedMetrics are those of our programs in the expressions of the alerts and the dashboard.
func namedMetrics() []string {
	GinkgoHelper()
	var expressions []string
	for _, rule := range alerts() {
		expressions = append(expressions, rule.Expr)
	}
	source, err := os.ReadFile(filepath.Join(chartDir, "files", "monitoring", "dashboard.json"))
	Expect(err).NotTo(HaveOccurred())
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	Expect(json.Unmarshal(source, &dashboard)).To(Succeed())
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	// `up` is the one metric of Prometheus itself.
	names := regexp.MustCompile(`\b(paddock|apiserver|controller_runtime|leader_election|process|go|rest_client)_[a-z0-9_]+`)
	found := names.FindAllString(strings.Join(expressions, "\n"), -1)
	Expect(len(found)).To(BeNumerically(">=", len(expressions)-2), "an expression names no metric that is known here")
	return found
}
