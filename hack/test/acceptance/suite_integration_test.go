// Package acceptance uses Paddock as its users do: the programs as processes, by HTTP and kubectl.
package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

func TestProcesses(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Paddock's processes")
}

var (
	cluster *localcluster.Cluster
	paddock *localpaddock.Paddock
	// balanced is one address in front of both API servers, which takes turns.
	balanced string
	// token may read and write the records of the site demo, postgresToken those of demo-postgres.
	token, postgresToken string
	// postgres has the database of the site demo-postgres, which belongs to the role demo.
	postgres *localpostgres.Server
)

// demos are the sites with the same records API, one in each storage.
var demos = []string{"demo", "demo-postgres"}

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "paddock-processes")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	bin := filepath.Join(root, "bin")
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: dir, AuditLog: true, UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{
		BinDir: bin, SourceDir: root, APIServers: 2, ControllerArgs: []string{"--ingress-hosts=*.clinics.example.org"},
	})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	keepController()
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
	waitReady(ctx, "demo", "demo")
	token = editorOf(ctx, "demo", "demo")
	postgres = startPostgres(ctx)
	_, err = postgres.CreateDatabase(ctx, "demo", "first")
	Expect(err).NotTo(HaveOccurred())
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples", "postgres"))).To(Succeed())
	kubectl(ctx, "create", "secret", "generic", "demo-db", "-n", "demo-postgres", "--type=paddock.health/dsn", "--from-literal=uri="+databaseURI("demo", "first"))
	waitReady(ctx, "demo-postgres", "demo-postgres")
	postgresToken = editorOf(ctx, "demo-postgres", "demo-postgres")
	balanced = serveBalanced(paddock.URLs)
}, NodeTimeout(5*time.Minute))

// keepController restarts the controller if it loses its Lease, because a spec kills kube-apiserver.
func keepController() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- localpaddock.KeepController(ctx, paddock.Controllers[0]) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
}

// waitReady waits until a Site is Ready, and until the API servers, which watch Sites, serve it.
func waitReady(ctx context.Context, namespace, site string) {
	GinkgoHelper()
	siteID, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1m", "-n", namespace, "site/"+site, "-o", "jsonpath={.spec.siteID}")
	Expect(err).NotTo(HaveOccurred())
	waitServed(cmp.Or(string(siteID), site))
}

// waitServed waits until each API server serves a Site that is not hidden. It requests what needs no
// token: to an invalid token, the servers respond in the same way if there is no such Site.
func waitServed(siteID string) {
	GinkgoHelper()
	for _, base := range paddock.URLs {
		Eventually(func() int {
			return send(request{method: "GET", url: base + "/site/" + siteID + "/fhir/metadata", token: "none"}).status
		}).Within(time.Minute).ProbeEvery(10 * time.Millisecond).Should(Equal(http.StatusOK))
	}
}

// serveBalanced serves one address that forwards each request to the next backend.
func serveBalanced(backends []string) string {
	var turn atomic.Int64
	proxies := make([]*httputil.ReverseProxy, len(backends))
	for i, backend := range backends {
		target, err := url.Parse(backend)
		Expect(err).NotTo(HaveOccurred())
		proxies[i] = httputil.NewSingleHostReverseProxy(target)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxies[int(turn.Add(1))%len(proxies)].ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return "http://" + listener.Addr().String()
}

// request is one HTTP request; token "none" sends no Authorization header, an
// empty one that of the editor of the demo site.
type request struct {
	method, url, body, token string
	header                   map[string]string
	// host is the Host header, if that is not the address's.
	host string
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func demoToken(url string) string {
	if strings.Contains(url, "/site/demo-postgres/") {
		return postgresToken
	}
	return token
}

func send(r request) response {
	GinkgoHelper()
	answer, err := trySend(r)
	Expect(err).NotTo(HaveOccurred())
	return answer
}

func trySend(r request) (response, error) {
	out, err := http.NewRequestWithContext(context.Background(), r.method, r.url, bytes.NewReader([]byte(r.body)))
	if err != nil {
		return response{}, err
	}
	switch r.token {
	case "none":
	case "":
		out.Header.Set("Authorization", "Bearer "+demoToken(r.url))
	default:
		out.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.body != "" {
		out.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		out.Header.Set(name, value)
	}
	out.Host = r.host
	in, err := http.DefaultClient.Do(out)
	if err != nil {
		return response{}, err
	}
	defer in.Body.Close()
	body, err := io.ReadAll(in.Body)
	return response{status: in.StatusCode, header: in.Header, body: body}, err
}

// field reads a member of a JSON answer by its path of names.
func (r response) field(path ...string) any {
	GinkgoHelper()
	var value any
	Expect(json.Unmarshal(r.body, &value)).To(Succeed(), string(r.body))
	for _, name := range path {
		object, ok := value.(map[string]any)
		Expect(ok).To(BeTrue(), "no object around %q in %s", name, r.body)
		value = object[name]
	}
	return value
}

func patient(n int) string {
	return fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, n)
}
