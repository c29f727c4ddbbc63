package certificate_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/controllers/certificate"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

func TestCertificate(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The certificate of the API servers")
}

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is what a cluster administrator uses; controller has the rights of config/rbac.
	admin, controller client.Client
)

var _ = BeforeSuite(func(ctx SpecContext) {
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(30 * time.Second)
	Expect(certificate.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	kubectl(ctx, "apply", "--server-side", "-k", "../../config/base")
	Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	config, err := cluster.UserConfig("system:serviceaccount:paddock-system:paddock-controller")
	Expect(err).NotTo(HaveOccurred())
	controller, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(5*time.Minute))

func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	bin := os.Getenv("PADDOCK_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
}
