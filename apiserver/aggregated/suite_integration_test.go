// Package aggregation drives the aggregated API as its users do: a real kubectl,
// a real kube-aggregator, Paddock's programs as processes.
package aggregated_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/tracecollector"
)

func TestAggregation(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Aggregated API")
}

var (
	cluster *localcluster.Cluster
	paddock *localpaddock.Paddock
	// cache is kubectl's, so that it finds nothing of other clusters.
	cache string
	// traces are what the API server tells of its requests.
	traces = &tracecollector.Collector{}
	// token opens the site demo by REST.
	token string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "paddock-aggregation")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	cache = filepath.Join(dir, "kubectl-cache")
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: dir, UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	receiver := httptest.NewServer(traces)
	DeferCleanup(receiver.Close)
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{
		BinDir: filepath.Join(root, "bin"), SourceDir: root, Aggregated: true,
		APIServerEnv: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=50"},
	})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
	token = startSite(ctx, "demo", "demo")
	for _, p := range demoPatients {
		put(ctx, "demo", token, p.id, p.body)
	}
}, NodeTimeout(5*time.Minute))

// demoPatients are in the site demo, and stay as they are.
var demoPatients = []struct{ id, body string }{
	{"rex", `{"resourceType":"Patient","id":"rex","active":true}`},
	{"rex", rex},
	{"Bella-1", `{"resourceType":"Patient","id":"Bella-1","name":[{"text":"Bella"}]}`},
	{"-odd.", `{"resourceType":"Patient","id":"-odd."}`},
	{"p1", `{"resourceType":"Patient","id":"p1"}`},
	{"p2", `{"resourceType":"Patient","id":"p2"}`},
}

// demoNames are the names of their objects, in order.
var demoNames = []string{"-odd.", "bella-1", "p1", "p2", "rex"}

const rex = `{"resourceType":"Patient","id":"rex","meta":{"tag":[{"system":"http://example.org","code":"vip"}]},"active":true,
"extension":[
 {"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[
  {"url":"species","valueCodeableConcept":{"coding":[{"system":"http://hl7.org/fhir/animal-species","code":"canislf","display":"Dog"}]}},
  {"url":"breed","valueCodeableConcept":{"text":"Kelpie"}}]},
 {"url":"http://example.org/weight","valueDecimal":18.50}],
"name":[{"use":"usual","given":["Rexy"]},{"use":"official","family":"Oak","given":["Rex"]}],
"gender":"male","birthDate":"2019-04-01"}`

// startSite waits until a Site serves, and returns a token of the editor beside it.
func startSite(ctx context.Context, namespace, site string) string {
	GinkgoHelper()
	_, err := kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", namespace, "site/"+site)
	Expect(err).NotTo(HaveOccurred())
	token, err := paddock.Token(ctx, namespace, "editor", "paddock.health/"+namespace+"/"+site, time.Hour)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() int { return send(ctx, http.MethodGet, siteURL(site), token, "").status }).
		WithContext(ctx).Should(Equal(http.StatusOK))
	return token
}

func siteURL(site string) string { return paddock.PublicURL() + "/site/" + site + "/fhir/patient" }

// put writes a patient by REST.
func put(ctx context.Context, site, token, id, body string) {
	GinkgoHelper()
	answer := send(ctx, http.MethodPut, siteURL(site)+"/"+id, token, body)
	Expect(answer.status).To(BeElementOf(http.StatusOK, http.StatusCreated), "%s", answer.body)
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func send(ctx context.Context, method, url, token, body string) response {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	return do(http.DefaultClient, request)
}

// ask sends one GET to kube-apiserver as an administrator, without kubectl's
// patience.
func ask(ctx context.Context, path, accept string) response {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cluster.Config().Host+path, nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", accept)
	return do(client, request)
}

// sendTo sends one request to kube-apiserver as an administrator.
func sendTo(ctx context.Context, method, path, contentType, body string) response {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, method, cluster.Config().Host+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	return do(client, request)
}

func do(client *http.Client, request *http.Request) response {
	GinkgoHelper()
	answer, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return response{answer.StatusCode, answer.Header, body}
}

// kubectl runs kubectl as an administrator. What it says on standard error is in
// the error, if it fails.
func kubectl(ctx context.Context, args ...string) (string, error) {
	output, err := paddock.Kubectl(ctx, append([]string{"--cache-dir", cache}, args...)...)
	return string(output), err
}

// must is for a kubectl that has to succeed.
func must(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// refused is for a kubectl that has to fail; it returns how.
func refused(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, args...)
	Expect(err).To(HaveOccurred(), output)
	return err.Error()
}

// apply applies YAML with kubectl.
func apply(ctx context.Context, manifest string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	must(ctx, "apply", "-f", file)
}

// rows are the words of a table's lines.
func rows(table string) [][]string {
	var rows [][]string
	for line := range bytes.Lines([]byte(table)) {
		rows = append(rows, strings.Fields(string(line)))
	}
	return rows
}
