// Package plugin runs bin/kubectl-paddock against a real control plane and Paddock's own programs.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

func TestPlugin(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "kubectl-paddock")
}

// patience is the time limit of what Paddock does within seconds, on a busy machine.
const patience = 60 * time.Second

var (
	bin     string
	cluster *localcluster.Cluster
	paddock *localpaddock.Paddock
	// editor is a token for the site demo, with the rights of the ServiceAccount editor.
	editor string
)

// manifest has a ServiceAccount that can read the audit log of the site demo, one without rights, and
// a Site that never becomes ready, because the Secret of its database does not exist.
const manifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: auditor, namespace: demo}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditor, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: demo}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: demo}
---
apiVersion: v1
kind: Namespace
metadata: {name: waiting}
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: waiting, namespace: waiting}
spec: {limits: {requestsPerSecond: 7}, storage: {type: Postgres, postgres: {external: {secretRef: {name: absent-db}}}}}
`

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	bin = filepath.Join(root, "bin")
	dir, err := os.MkdirTemp("", "paddock-plugin")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: dir, UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: bin, SourceDir: root})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
	kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "-n", "demo", "site/demo")
	apply(ctx, manifest)
	kubectl(ctx, "", "wait", `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=SecretNotFound`, "--timeout=60s", "-n", "waiting", "site/waiting")
	Eventually(func(g Gomega) {
		result := run(ctx, "token", "demo", "-n", "demo", "--as-service-account", "editor")
		g.Expect(result.code).To(Equal(0), result.stderr)
		editor = strings.TrimSpace(result.stdout)
		g.Expect(request(ctx, http.MethodGet, "/fhir/patient", editor, "").StatusCode).To(Equal(http.StatusOK))
		auditor := run(ctx, "audit", "demo", "-n", "demo", "--as-service-account", "auditor", "--limit", "1")
		g.Expect(auditor.code).To(Equal(0), auditor.stderr)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}, NodeTimeout(5*time.Minute))

// result is how a program ended.
type result struct {
	code           int
	stdout, stderr string
}

// command returns a run of kubectl-paddock as the administrator of the cluster.
func command(args ...string) *exec.Cmd {
	made := exec.Command(filepath.Join(bin, "kubectl-paddock"), args...)
	made.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	return made
}

// run runs kubectl-paddock until it ends.
func run(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return finish(ctx, command(args...))
}

// ok runs kubectl-paddock, which must succeed, and returns what it prints to stdout.
func ok(ctx context.Context, args ...string) string {
	GinkgoHelper()
	got := run(ctx, args...)
	Expect(got.code).To(Equal(0), "%v: %s%s", args, got.stdout, got.stderr)
	return got.stdout
}

// fails runs kubectl-paddock, which must end with the code 1, and returns what it prints to stderr.
func fails(ctx context.Context, args ...string) string {
	GinkgoHelper()
	got := run(ctx, args...)
	Expect(got.code).To(Equal(1), "%v: %s%s", args, got.stdout, got.stderr)
	Expect(got.stderr).To(HavePrefix("error: "))
	return got.stderr
}

func finish(ctx context.Context, program *exec.Cmd) result {
	GinkgoHelper()
	var stdout, stderr bytes.Buffer
	program.Stdout, program.Stderr = &stdout, &stderr
	Expect(program.Start()).To(Succeed(), "the programs come from `make build`")
	stop := context.AfterFunc(ctx, func() { _ = program.Process.Kill() })
	defer stop()
	_ = program.Wait() // the code says how it ended
	return result{program.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// start starts kubectl-paddock, which runs until it is interrupted.
func start(args ...string) *gexec.Session {
	GinkgoHelper()
	session, err := gexec.Start(command(args...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// interrupt ends what start started, which must count as done.
func interrupt(session *gexec.Session) {
	GinkgoHelper()
	session.Interrupt()
	Eventually(session).Within(patience).Should(gexec.Exit(0))
}

// decode returns the value of a JSON text.
func decode[T any](text string) T {
	GinkgoHelper()
	var value T
	Expect(json.Unmarshal([]byte(text), &value)).To(Succeed(), text)
	return value
}

// kubectl runs bin/kubectl as the administrator and returns its output.
func kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	program := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	program.Stdin = strings.NewReader(input)
	got := finish(ctx, program)
	Expect(got.code).To(Equal(0), "kubectl %v: %s%s", args, got.stdout, got.stderr)
	return got.stdout
}

func apply(ctx context.Context, objects string) {
	GinkgoHelper()
	kubectl(ctx, objects, "apply", "-f", "-")
}

// request sends a request to the site demo. The body of the response is not read.
func request(ctx context.Context, method, path, token, body string) *http.Response {
	GinkgoHelper()
	return requestAt(ctx, method, paddock.PublicURL()+"/site/demo"+path, token, body)
}

func requestAt(ctx context.Context, method, url, token, body string) *http.Response {
	GinkgoHelper()
	made, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	made.Header.Set("Authorization", "Bearer "+token)
	made.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(made)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response
}

// encode returns a value as JSON.
func encode(value any) string {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
