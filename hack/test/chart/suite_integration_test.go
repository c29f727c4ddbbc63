// Package chart_test installs charts/paddock by Helm on a real kube-apiserver. No pods
// run there: it is about what the API server, the policies and the programs' own flags
// accept.
package chart_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

func TestChart(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "The chart on a control plane")
}

const (
	// namespace is where the chart is installed.
	namespace = "paddock-system"
	release   = "paddock"
)

var (
	cluster *localcluster.Cluster
	admin   client.Client
)

var (
	root     = filepath.Join("..", "..", "..")
	bin      = filepath.Join(root, "bin")
	chartDir = filepath.Join(root, "charts", "paddock")
)

var _ = BeforeSuite(func(ctx SpecContext) {
	logf.SetLogger(GinkgoLogr)
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(apiregistrationv1.AddToScheme(scheme)).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	run(ctx, "kubectl", "create", "namespace", namespace)
	run(ctx, "kubectl", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
}, NodeTimeout(5*time.Minute))

// run runs one of the tools as the cluster's administrator and returns what it prints.
func run(ctx context.Context, tool string, args ...string) string {
	GinkgoHelper()
	out, err := try(ctx, tool, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %v: %s", tool, args, out)
	return out
}

func try(ctx context.Context, tool string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(bin, tool), append(args, "--kubeconfig", cluster.Kubeconfig())...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+cluster.File("helm"), "HELM_CONFIG_HOME="+cluster.File("helm"), "HELM_DATA_HOME="+cluster.File("helm"))
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	err := command.Run()
	return out.String() + stderr.String(), err
}

// install installs or upgrades the chart; set are its values in the form of helm's --set.
func install(ctx context.Context, set ...string) {
	GinkgoHelper()
	run(ctx, "helm", "upgrade", "--install", release, chartDir, "--namespace", namespace,
		"--set", strings.Join(set, ","))
}
