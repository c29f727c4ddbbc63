// Package clients_test drives a running Paddock with FHIR client libraries of other languages and
// checks what they are answered and which versions their writes make.
package clients_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

func TestClients(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "FHIR clients")
}

const (
	// The sites of config/samples, one for each storage, and the one that schemathesis uses. Their
	// namespaces have the same names.
	clusterSite  = "demo"
	postgresSite = "demo-postgres"
	fuzzedSite   = "fuzzed"
)

var (
	// bin is the folder with Paddock's programs, below which the libraries are installed.
	bin     string
	paddock *localpaddock.Paddock
	// traffic is between the clients and the API server. Links in answers lead to it, too.
	traffic *recorder
	// tokens may read and write the records of a site.
	tokens = map[string]string{}
)

var _ = BeforeSuite(func(ctx SpecContext) {
	requireTools(ctx)
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	bin = filepath.Join(root, "bin")
	for _, l := range []library{javaLibrary, pythonLibrary, nodeLibrary} {
		l.prepare(ctx)
	}

	dir, err := os.MkdirTemp("", "paddock-clients")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	postgres, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "postgres"), UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(postgres.Stop)
	uri, err := postgres.CreateDatabase(ctx, "demo", "demo")
	Expect(err).NotTo(HaveOccurred())
	cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: filepath.Join(dir, "cluster"), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	traffic = startRecorder()
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: bin, SourceDir: root, PublicURL: traffic.address})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	traffic.forwardTo(paddock.URLs[0])

	Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples", "postgres"))).To(Succeed())
	_, err = paddock.Kubectl(ctx, "apply", "--filename", filepath.Join("testdata", "fuzzed.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, site := range []string{postgresSite, fuzzedSite} {
		Expect(paddock.SetSecret(ctx, site, "demo-db", "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	}
	for _, site := range []string{clusterSite, postgresSite, fuzzedSite} {
		_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", site, "site/"+site)
		Expect(err).NotTo(HaveOccurred())
		tokens[site], err = paddock.Token(ctx, site, "editor", "paddock.health/"+site+"/"+site, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		// The API server sees a moment after the controller that a site is ready. It caches a refusal for 10 s.
		Eventually(func() int { return send(http.MethodGet, site, "Patient?_count=0", nil).status }).Should(Equal(http.StatusOK))
	}
}, NodeTimeout(10*time.Minute))

type response struct {
	status int
	body   []byte
}

// send requests a path of a site's FHIR API, without the recorder.
func send(method, site, path string, body []byte) response {
	GinkgoHelper()
	request, err := http.NewRequest(method, paddock.URLs[0]+"/site/"+site+"/fhir/"+path, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+tokens[site])
	request.Header.Set("Accept", "application/fhir+json")
	request.Header.Set("Content-Type", "application/fhir+json")
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return response{status: answer.StatusCode, body: text}
}
