package pagetoken_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/paddock-health/paddock/controllers/pagetoken"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

func TestPageToken(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The key of page tokens")
}

const (
	operatorNamespace = "paddock-system"
	secretName        = "paddock-page-token-key"
	formerName        = "paddock-page-token"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is what a cluster administrator uses, uncached.
	admin client.Client
	// manager has the rights that config/rbac gives the controller.
	manager ctrl.Manager
)

var _ = BeforeSuite(func(ctx SpecContext) {
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(30 * time.Second)
	logf.SetLogger(GinkgoLogr)
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(eventsv1.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	bin := os.Getenv("PADDOCK_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "--kubeconfig", cluster.Kubeconfig(),
		"apply", "--server-side", "-k", "../../config/base").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	config, err := cluster.UserConfig("system:serviceaccount:paddock-system:paddock-controller")
	Expect(err).NotTo(HaveOccurred())
	manager, err = ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(running) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
}, NodeTimeout(5*time.Minute))

// newKeeper returns the Keeper of a controller that has just become the leader.
func newKeeper() *pagetoken.Keeper {
	return &pagetoken.Keeper{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder("paddock-controller"),
		Secret: client.ObjectKey{Namespace: operatorNamespace, Name: secretName}, Now: func() time.Time { return now },
	}
}

// now is the clock of the keepers.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// key returns a valid key whose bytes are all the same.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

// createSecret creates a Secret with a key, or with no data.
func createSecret(ctx context.Context, name string, keys ...string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: operatorNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "paddock"},
	}}
	if len(keys) > 0 {
		secret.StringData = map[string]string{"key": keys[0]}
	}
	Expect(admin.Create(ctx, secret)).To(Succeed())
}

// createHelmRecord creates what Helm keeps of a revision whose manifest has the former Secret.
func createHelmRecord(ctx context.Context, revision int, key string) {
	GinkgoHelper()
	manifest := "---\n# Source: paddock/templates/facade.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: paddock-facade\n" +
		"spec: {template: {spec: {volumes: [{name: page-token, secret: {secretName: paddock-page-token}}]}}}\n"
	if key != "" {
		manifest += "---\n# Source: paddock/templates/page-token.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: paddock-page-token\n" +
			"data:\n  key: " + base64.StdEncoding.EncodeToString([]byte(key)) + "\n"
	}
	record, err := json.Marshal(map[string]any{"name": "paddock", "version": revision, "manifest": manifest})
	Expect(err).NotTo(HaveOccurred())
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err = writer.Write(record)
	Expect(err).NotTo(HaveOccurred())
	Expect(writer.Close()).To(Succeed())
	createRecord(ctx, revision, base64.StdEncoding.EncodeToString(compressed.Bytes()))
}

func createRecord(ctx context.Context, revision int, content string) {
	GinkgoHelper()
	number := strconv.Itoa(revision)
	Expect(admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: "sh.helm.release.v1.paddock.v" + number, Labels: map[string]string{"owner": "helm", "version": number},
		},
		Type: "helm.sh/release.v1", StringData: map[string]string{"release": content},
	})).To(Succeed())
}
