// Package kubectl drives the aggregated API by kubectl, as staff, administrators and
// GitOps do: real binaries, both engines, kube-controller-manager beside them.
package kubectl_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

func TestKubectl(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "kubectl")
}

const (
	group = "/apis/r4.fhir.paddock.health/v1alpha1"
	// lag is longer than kube-apiserver takes to merge schemas, and to notice that a
	// server is gone or back, and than rights are remembered.
	lag       = time.Minute
	tokenLife = time.Hour
)

var (
	root     string
	cluster  *localcluster.Cluster
	paddock  *localpaddock.Paddock
	postgres *localpostgres.Server
	// cache is kubectl's, so that it finds nothing of other clusters.
	cache string
)

// engines are where the sites keep their records. Each has a namespace and a site of
// its name.
var engines = []string{"etcd", "postgres"}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "paddock-kubectl")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	cache = filepath.Join(dir, "cache")
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: filepath.Join(dir, "cluster"), UnsafeNoFsync: true, ControllerManager: true, Out: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	postgres, err = localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "postgres"), UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(postgres.Stop)
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: filepath.Join(root, "bin"), SourceDir: root, Aggregated: true})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	for _, engine := range engines {
		startSite(ctx, engine, engine)
	}
}, NodeTimeout(5*time.Minute))

const siteManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec: {%[2]s}
`

// startSite makes a namespace with a site of its name, which is ready then.
func startSite(ctx context.Context, name, engine string) {
	GinkgoHelper()
	storage := "displayName: A clinic"
	if engine == "postgres" {
		storage = "storage: {type: Postgres, postgres: {external: {secretRef: {name: db}}}}"
	}
	manifest := fmt.Sprintf(siteManifest, name, storage)
	s := script{namespace: name}
	s.feed(ctx, manifest, "apply -f -")
	if engine == "postgres" {
		uri, err := postgres.CreateDatabase(ctx, name, "secret")
		Expect(err).NotTo(HaveOccurred())
		Expect(paddock.SetSecret(ctx, name, "db", "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	}
	s.ok(ctx, "wait --for=condition=Ready --timeout=60s site/"+name)
	editor(ctx, name) // the API server sees a moment after the controller that the Site is ready
}

// editor is a token of a site's ServiceAccount editor, once it opens the site.
func editor(ctx context.Context, site string) string {
	GinkgoHelper()
	token, err := paddock.Token(ctx, site, "editor", "paddock.health/"+site+"/"+site, tokenLife)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() int { return rest(ctx, http.MethodGet, site, token, "/patient?_count=1", "").status }).
		WithContext(ctx).WithTimeout(lag).Should(Equal(http.StatusOK))
	return token
}

type answer struct {
	status int
	header http.Header
	body   string
}

// rest sends a request to a site's FHIR base.
func rest(ctx context.Context, method, site, token, path, body string) answer {
	GinkgoHelper()
	url := paddock.PublicURL() + "/site/" + site + "/fhir" + path
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/fhir+json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, response.Header, string(read)}
}

// putAll writes resources by REST, by path.
func putAll(ctx context.Context, site, token string, resources map[string]string) {
	GinkgoHelper()
	for path, body := range resources {
		written := rest(ctx, http.MethodPut, site, token, path, body)
		Expect(written.status).To(BeElementOf(http.StatusOK, http.StatusCreated), written.body)
	}
}
