package targets_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery/targets"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// The suite runs Targets with the rights of config/rbac.
func TestTargets(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Targets of delivery")
}

const secretsNamespace = "paddock-webhooks"

var (
	cluster *localcluster.Cluster
	// admin is what a cluster administrator uses, uncached.
	admin client.Client
	hooks *targets.Targets
)

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	logf.SetLogger(GinkgoLogr)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	kubectl(ctx, "apply", "--server-side", "-k", "../../../config/base")
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	// kube-apiserver serves the resource of an established CRD a moment later.
	Eventually(func() error { return admin.List(ctx, &v1alpha1.WebhookList{}) }).WithContext(ctx).Should(Succeed())
	rights, err := cluster.UserConfig("system:serviceaccount:paddock-system:paddock-delivery")
	Expect(err).NotTo(HaveOccurred())
	hooks, err = targets.New(rights, targets.Options{SecretsNamespace: secretsNamespace})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hooks.Run(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-done).To(Succeed())
	})
}, NodeTimeout(5*time.Minute))

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	bin := os.Getenv("PADDOCK_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return string(out)
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clinic-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}
