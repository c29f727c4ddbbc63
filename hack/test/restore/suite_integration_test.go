// Package restore destroys an installation and restores it from what docs/guides/backup.md says to save.
package restore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

func TestRestore(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Backup and restore")
}

const (
	// publicURL is the address of links. Requests go to the API server of the installation instead.
	publicURL = "http://records.test"
	system    = "paddock-system"
	patience  = 2 * time.Minute
)

var root, bin string

var _ = BeforeSuite(func() {
	var err error
	root, err = filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	bin = filepath.Join(root, "bin")
})

// installation is a control plane with Paddock.
type installation struct {
	cluster *localcluster.Cluster
	paddock *localpaddock.Paddock
	// tokens are those of the ServiceAccount editor, by the name of the Site.
	tokens map[string]string
}

// startCluster starts a control plane in dir, new or with the data that are there.
func startCluster(ctx context.Context, dir string) *installation {
	GinkgoHelper()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: dir, UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	return &installation{cluster: cluster, tokens: map[string]string{}}
}

// startPaddock starts Paddock in it.
func (i *installation) startPaddock(ctx context.Context) {
	GinkgoHelper()
	var err error
	i.paddock, err = localpaddock.Start(ctx, i.cluster, localpaddock.Options{BinDir: bin, SourceDir: root, PublicURL: publicURL})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
}

// awaitSites returns when the Sites can be used with new tokens.
func (i *installation) awaitSites(ctx context.Context) {
	GinkgoHelper()
	for _, site := range sites {
		Eventually(ctx, func() string {
			return i.kubectl(ctx, "", "get", "site", site, "--namespace", namespaceOf(site), "--output", "jsonpath={.status.conditions}")
		}).WithTimeout(patience).Should(MatchRegexp(`"status":"True","type":"Ready"`))
		i.tokens[site] = strings.TrimSpace(i.kubectl(ctx, "", "create", "token", "editor", "--namespace", namespaceOf(site),
			"--audience", "paddock.health/"+namespaceOf(site)+"/"+site))
		Eventually(ctx, func() int {
			return i.send(ctx, site, http.MethodGet, "/fhir/patient", "").status
		}).WithTimeout(patience).Should(Equal(http.StatusOK))
	}
}

// kubectl runs kubectl as the administrator and returns what it prints.
func (i *installation) kubectl(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := i.tryKubectl(ctx, stdin, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func (i *installation) tryKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+i.cluster.Kubeconfig())
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %v: %w: %s", args, err, &stderr)
	}
	return stdout.String(), nil
}

// response is a response without its header.
type response struct {
	status int
	body   string
}

// send sends a request to the API server. path is relative to the site, or a link of a response.
func (i *installation) send(ctx context.Context, site, method, path, body string) response {
	GinkgoHelper()
	link, isLink := strings.CutPrefix(path, publicURL)
	if !isLink {
		link = "/site/" + site + path
	}
	request, err := http.NewRequestWithContext(ctx, method, i.paddock.URLs[0]+link, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if !strings.Contains(link, "token=") {
		request.Header.Set("Authorization", "Bearer "+i.tokens[site])
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return response{answer.StatusCode, string(text)}
}

// want sends a request that must be answered with a status, and parses the body into answer, unless nil.
func (i *installation) want(ctx context.Context, status int, site, method, path, body string, answer any) {
	GinkgoHelper()
	got := i.send(ctx, site, method, path, body)
	Expect(got.status).To(Equal(status), "%s %s: %s", method, path, got.body)
	if answer != nil {
		Expect(json.Unmarshal([]byte(got.body), answer)).To(Succeed(), got.body)
	}
}

func namespaceOf(site string) string { return fmt.Sprintf("clinic-%s", site) }
