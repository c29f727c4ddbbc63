package site_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/controllers/announce"
	"github.com/paddock-health/paddock/controllers/certificate"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site"
	"github.com/paddock-health/paddock/controllers/site/provision"
	"github.com/paddock-health/paddock/controllers/siteclass"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

const (
	publicURL = "https://fhir.example.org"
	// controllerUser has the rights of config/rbac and no others.
	controllerUser       = "system:serviceaccount:paddock-system:paddock-controller"
	apiServerUser        = "system:serviceaccount:paddock-system:paddock-apiserver"
	deliveryUser         = "system:serviceaccount:paddock-system:paddock-delivery"
	operatorNamespace    = "paddock-system"
	connectionsNamespace = "paddock-connections"
	// serviceAddress and secondServiceAddress stand for the addresses of Services of provisioned databases
	// with the first and the second name; nobody listens there.
	serviceAddress       = "127.0.0.2"
	secondServiceAddress = "127.0.0.3"
	// databaseTimeout is short, but longer than a migration takes on a busy machine.
	databaseTimeout = 10 * time.Second
)

var (
	cluster          *localcluster.Cluster
	controllerConfig *rest.Config
	scheme           = runtime.NewScheme()
	// admin is what a cluster administrator uses, uncached.
	admin client.WithWatch
	// apiServer has the rights of Paddock's API servers: nobody else writes records.
	apiServer client.Client
	// deliverer has the rights of the delivery process.
	deliverer client.Client
	// clusterServices is where the hosts of Services are, as there is no cluster network:
	// the address of a server on this machine, by the address of the Service.
	clusterServices sync.Map
	// drain is the delay between the deletion of a Site and that of its records. A spec may change it before it
	// starts a controller.
	drain = 2 * time.Second
)

func TestSite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Site controller")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(GinkgoLogr)
	for _, add := range []func(*runtime.Scheme) error{
		site.AddToScheme, certificate.AddToScheme, authorizationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme, recordsv1alpha1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}

	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: GinkgoT().TempDir(), ControllerManager: true, AuditLog: true, UnsafeNoFsync: true, Out: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	kubectl(ctx, "apply", "--server-side", "-k", "../../config/base")
	Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(Succeed())

	admin, err = client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	controllerConfig, err = cluster.UserConfig(controllerUser)
	Expect(err).NotTo(HaveOccurred())
	apiServer, deliverer = clientOf(apiServerUser), clientOf(deliveryUser)
})

// Every controller that starts reconciles all Sites that there are, so that those of earlier specs
// would take most of the suite's time.
var _ = BeforeEach(func() {
	if !CurrentSpecReport().IsInOrderedContainer {
		DeferCleanup(forgetSites) // the first, which runs when the controllers have stopped
	}
})

// forgetSites removes all Sites, their claims and classes, without their data, while no controller runs.
func forgetSites(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&v1alpha1.SiteList{}, &v1alpha1.SiteClaimList{}, &v1alpha1.NamespaceClaimList{}, &v1alpha1.SiteClassList{}} {
		Expect(admin.List(ctx, list)).To(Succeed())
		objects, err := meta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, each := range objects {
			object := each.(client.Object)
			remove := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(admin.Patch(ctx, object, remove))).To(Succeed())
			Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
		}
	}
}

// clientOf acts as a user.
func clientOf(user string) client.Client {
	GinkgoHelper()
	config, err := cluster.UserConfig(user)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// hasRight returns a function that reports whether kube-apiserver knows a right of a user.
func hasRight(user string, right authorizationv1.ResourceAttributes) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}
}

// awaitRight waits until kube-apiserver knows a right of a user, which was granted a moment ago.
func awaitRight(ctx context.Context, user string, right authorizationv1.ResourceAttributes) {
	GinkgoHelper()
	Eventually(hasRight(user, right)).WithContext(ctx).Should(BeTrue())
}

// awaitKinds waits until kube-apiserver lists kinds whose definitions were created a moment ago. A controller
// that does not find a kind looks again after a minute.
func awaitKinds(ctx context.Context, kinds ...schema.GroupVersionKind) {
	GinkgoHelper()
	for _, kind := range kinds {
		Eventually(func() error {
			_, err := admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
			return err
		}).WithContext(ctx).Should(Succeed())
	}
}

// dial reaches databases: those of the cluster's Services are on this machine.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if there, ok := clusterServices.Load(strings.TrimSuffix(address, ":5432")); ok {
		address = there.(string)
	}
	return egress.NewDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}).DialContext(ctx, network, address)
}

func lookup(ctx context.Context, host string) ([]string, error) {
	if address := poolAddress(host); address != "" {
		return []string{address}, nil
	}
	if strings.HasPrefix(host, provision.SecondName+".") {
		return []string{secondServiceAddress}, nil
	}
	if strings.HasSuffix(host, ".svc") {
		return []string{serviceAddress}, nil
	}
	return net.DefaultResolver.LookupHost(ctx, host)
}

// poolHost matches the beginning of the host name of a database of a template, and the name of its Secret.
var poolHost = regexp.MustCompile(`^(grown|kept|deleted)-([0-9]+)-pool(\.|$)`)

// poolAddress stands for the address of the Service of a database of a template. It returns "" for other
// hosts.
func poolAddress(host string) string {
	found := poolHost.FindStringSubmatch(host)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("127.0.%d.%s", len(found[1]), found[2]) // the names of the classes differ in length
}

func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	bin := os.Getenv("PADDOCK_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
}

// startController runs a controller as a Deployment would, until the end of the
// spec or until the function it returns is called.
func startController(ctx context.Context, change ...func(*ctrl.Options)) (stop func()) {
	GinkgoHelper()
	return startControllerWith(ctx, secrets.Cluster, change...)
}

func startControllerWith(ctx context.Context, access secrets.Access, change ...func(*ctrl.Options)) (stop func()) {
	GinkgoHelper()
	opts := ctrl.Options{
		Scheme:     scheme,
		Cache:      cache.Options{ByObject: site.CachedObjects(access, operatorNamespace, connectionsNamespace)},
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	for _, c := range change {
		c(&opts)
	}
	mgr, err := ctrl.NewManager(controllerConfig, opts)
	Expect(err).NotTo(HaveOccurred())
	reconciler := &site.Reconciler{
		Client:               mgr.GetClient(),
		Live:                 mgr.GetAPIReader(),
		Recorder:             announce.NewRecorder(mgr.GetEventRecorder("paddock-controller"), mgr.GetCache()),
		PublicURL:            publicURL,
		Drain:                drain,
		Namespace:            operatorNamespace,
		ConnectionsNamespace: connectionsNamespace,
		Dial:                 dial,
		DatabaseTimeout:      databaseTimeout,
		Lookup:               lookup,

		SecretAccess: access,
		DialIssuers:  egress.NewDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}).DialContext,

		PostgresImage: "docker.io/library/postgres", CloudNativePGImage: "ghcr.io/cloudnative-pg/postgresql",

		Exposure: allowed,

		Lease: client.ObjectKey{Namespace: operatorNamespace, Name: leaseName},
		Now:   time.Now,
	}
	if lock := opts.LeaderElectionResourceLockInterface; lock != nil {
		reconciler.Identity = lock.Identity()
	}
	Expect(reconciler.SetupWithManager(ctx, mgr)).To(Succeed())
	Expect((&site.MoveReconciler{Reconciler: reconciler}).SetupWithManager(mgr)).To(Succeed())
	classes := &siteclass.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: operatorNamespace, CloudNativePGImage: "ghcr.io/cloudnative-pg/postgresql", Now: time.Now,
	}
	Expect(classes.SetupWithManager(mgr)).To(Succeed())

	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	var stopped atomic.Bool
	stop = func() {
		GinkgoHelper()
		if !stopped.Swap(true) {
			cancel()
			Expect(<-done).To(Succeed())
		}
	}
	DeferCleanup(stop)
	return stop
}

var namespaces atomic.Int64

// newNamespace makes a namespace whose name nobody else in the suite has.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	name := fmt.Sprintf("clinic-%d", namespaces.Add(1))
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	return name
}

// newSite is a Site whose siteID is not its name; it is not created yet.
func newSite(namespace, name, siteID string, policy v1alpha1.DeletionPolicy) *v1alpha1.Site {
	return &v1alpha1.Site{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.SiteSpec{SiteID: siteID, DeletionPolicy: policy},
	}
}

// createSite creates a Site that keeps its data.
func createSite(ctx context.Context, namespace, name, siteID string) *v1alpha1.Site {
	GinkgoHelper()
	s := newSite(namespace, name, siteID, v1alpha1.DeletionRetain)
	Expect(admin.Create(ctx, s)).To(Succeed())
	return s
}

// condition tells a condition's status and reason, such as "True Serving".
func condition(s *v1alpha1.Site, kind string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		now := &v1alpha1.Site{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(now.Status.Conditions, kind)
		if c == nil {
			return "none", nil
		}
		return string(c.Status) + " " + c.Reason, nil
	}
}

func expectReady(ctx context.Context, s *v1alpha1.Site) {
	GinkgoHelper()
	Eventually(condition(s, v1alpha1.ConditionReady)).WithContext(ctx).Should(Equal("True Serving"))
}

func expectRefused(ctx context.Context, s *v1alpha1.Site, reason string) {
	GinkgoHelper()
	Eventually(condition(s, v1alpha1.ConditionAccepted)).WithContext(ctx).Should(Equal("False " + reason))
}

// get reads an object that has to be there.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, namespace, name string) *T {
	GinkgoHelper()
	obj := P(new(T))
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(Succeed())
	return obj
}

// reload reads the Site again.
func reload(ctx context.Context, s *v1alpha1.Site) *v1alpha1.Site {
	GinkgoHelper()
	return get[v1alpha1.Site](ctx, s.Namespace, s.Name)
}

// deleteAndWait deletes an object and returns when it is gone.
func deleteAndWait(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, obj)).To(Succeed())
	expectGone(ctx, obj)
}

func expectGone(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}).WithContext(ctx).Should(MatchError(apierrors.IsNotFound, "a not-found error"))
}

// update changes an object as it is now.
func update[T any, P interface {
	*T
	client.Object
}](ctx context.Context, namespace, name string, change func(*T)) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		obj := P(new(T))
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(Succeed())
		change(obj)
		g.Expect(admin.Update(ctx, obj)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}
