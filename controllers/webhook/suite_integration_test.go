package webhook_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/webhook"
	"github.com/paddock-health/paddock/controllers/webhookevent"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

// The suite runs the controllers of Webhooks and of WebhookEvents, which watch each other's
// objects, with the rights of config/rbac.
func TestWebhook(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook and WebhookEvent controllers")
}

const (
	serviceAccounts  = "system:serviceaccount:paddock-system:"
	secretsNamespace = "paddock-webhooks"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is what a cluster administrator uses, uncached.
	admin client.Client
	// stopControllers stops those that run in most specs.
	stopControllers func()
)

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(GinkgoLogr)
	Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(eventsv1.AddToScheme(scheme)).To(Succeed())
	Expect(rbacv1.AddToScheme(scheme)).To(Succeed())
	Expect(authorizationv1.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	kubectl(ctx, "apply", "--server-side", "-k", "../../config/base")
	Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	stopControllers = startControllers(secrets.Cluster)
	DeferCleanup(func() { stopControllers() })
}, NodeTimeout(5*time.Minute))

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	bin := os.Getenv("PADDOCK_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return string(out)
}

// asAccount is what one of our programs uses, uncached.
func asAccount(name string) client.Client {
	GinkgoHelper()
	config, err := cluster.UserConfig(serviceAccounts + name)
	Expect(err).NotTo(HaveOccurred())
	program, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return program
}

// startControllers runs the controllers until the function that it returns is called. They report
// missing Secrets immediately, unless change sets their patience.
func startControllers(access secrets.Access, change ...func(*webhook.Reconciler)) (stop func()) {
	GinkgoHelper()
	rest, err := cluster.UserConfig(serviceAccounts + "paddock-controller")
	Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	hooks := &webhook.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), SecretAccess: access, Namespace: "paddock-system", SecretsNamespace: secretsNamespace,
		Recorder: mgr.GetEventRecorder("paddock-controller"), Now: time.Now,
	}
	for _, c := range change {
		c(hooks)
	}
	Expect(hooks.SetupWithManager(mgr)).To(Succeed())
	Expect((&webhookevent.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("paddock-controller"), Now: time.Now}).SetupWithManager(mgr)).To(Succeed())
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return stop
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clinic-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

func newHook(namespace string, change ...func(*v1alpha1.WebhookSpec)) *v1alpha1.Webhook {
	active := true
	hook := &v1alpha1.Webhook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hook"},
		Spec:       v1alpha1.WebhookSpec{EventType: "user.created", URL: "https://example.org/hook", Active: &active},
	}
	for _, c := range change {
		c(&hook.Spec)
	}
	return hook
}

func newEvent(namespace string) *v1alpha1.WebhookEvent {
	enabled := true
	return &v1alpha1.WebhookEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "event"},
		Spec:       v1alpha1.WebhookEventSpec{EventType: "user.created", Enabled: &enabled},
	}
}

// condition returns a condition's status and reason, such as "True Active", of what the
// object is now.
func condition(object client.Object, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c, err := find(ctx, object, kind)
		if err != nil || c == nil {
			return "not known", err
		}
		return string(c.Status) + " " + c.Reason, nil
	}
}

// message returns a condition's message of what the object is now.
func message(object client.Object, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c, err := find(ctx, object, kind)
		if err != nil || c == nil {
			return "not known", err
		}
		return c.Message, nil
	}
}

// find reads an object and returns its condition, or nil if that is not of the current spec.
func find(ctx context.Context, object client.Object, kind string) (*metav1.Condition, error) {
	if err := admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	var conditions []metav1.Condition
	switch object := object.(type) {
	case *v1alpha1.Webhook:
		conditions = object.Status.Conditions
	case *v1alpha1.WebhookEvent:
		conditions = object.Status.Conditions
	}
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.ObservedGeneration != object.GetGeneration() {
		return nil, nil
	}
	return c, nil
}

func expectActive(ctx context.Context, object client.Object, want string) {
	GinkgoHelper()
	Eventually(condition(object, v1alpha1.ConditionActive)).WithContext(ctx).Should(Equal(want))
}

func expectAccepted(ctx context.Context, object client.Object, want string) {
	GinkgoHelper()
	Eventually(condition(object, v1alpha1.ConditionAccepted)).WithContext(ctx).Should(Equal(want))
}

// patch changes an object as kubectl does.
func patch(ctx context.Context, object client.Object, change string) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(change)))).To(Succeed())
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
