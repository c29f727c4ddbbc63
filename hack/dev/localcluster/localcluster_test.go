package localcluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/procfs"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-health/paddock/hack/dev/dirlock"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// limit is longer than the starts in a spec may take together.
const limit = SpecTimeout(5 * time.Minute)

func clientFor(config *rest.Config) kubernetes.Interface {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

func createNamespace(ctx context.Context, client kubernetes.Interface, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func expectNamespace(ctx context.Context, client kubernetes.Interface, name string) {
	GinkgoHelper()
	_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("a control plane", Ordered, func() {
	const namespace = "clinic-oak"
	var (
		dir     string
		out     = gbytes.NewBuffer()
		cluster *localcluster.Cluster
		client  kubernetes.Interface
	)

	BeforeAll(func(ctx SpecContext) {
		dir = GinkgoT().TempDir()
		cluster = start(ctx, localcluster.Options{Dir: dir, AuditLog: true, Out: out})
		client = clientFor(cluster.Config())
		createNamespace(ctx, client, namespace)
	}, NodeTimeout(5*time.Minute))

	It("hands out a kubeconfig that works", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		expectNamespace(ctx, clientFor(config), namespace)
	}, limit)

	It("knows nobody without credentials", func(ctx SpecContext) {
		_, err := clientFor(rest.AnonymousClientConfig(cluster.Config())).CoreV1().Namespaces().
			Get(ctx, namespace, metav1.GetOptions{})
		Expect(err).To(MatchError(apierrors.IsUnauthorized, "unauthorized"))
	}, limit)

	It("leaves what a user may do to RBAC", func(ctx SpecContext) {
		config, err := cluster.UserConfig("vera", "vets")
		Expect(err).NotTo(HaveOccurred())
		vera := clientFor(config)
		review, err := vera.AuthenticationV1().SelfSubjectReviews().
			Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("vera"))
		Expect(review.Status.UserInfo.Groups).To(ContainElement("vets"))
		_, err = vera.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
	}, limit)

	It("tells aggregated API servers which front proxy to trust", func(ctx SpecContext) {
		published, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).
			Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		ca, err := os.ReadFile(cluster.FrontProxyCAFile())
		Expect(err).NotTo(HaveOccurred())
		Expect(published.Data).To(HaveKeyWithValue("requestheader-client-ca-file", string(ca)))
	}, limit)

	It("writes an audit log", func(ctx SpecContext) {
		Eventually(ctx, os.ReadFile).WithArguments(cluster.AuditLog()).
			Should(ContainSubstring(`"requestURI":"/api/v1/namespaces"`))
	}, limit)

	It("keeps a second owner out of its folder", func(ctx SpecContext) {
		_, err := localcluster.Start(ctx, localcluster.Options{Dir: dir})
		var held *dirlock.HeldError
		Expect(errors.As(err, &held)).To(BeTrue(), "error: %v", err)
		Expect(held.Process).To(Equal(strconv.Itoa(os.Getpid())))
	}, limit)

	It("has a neighbour that shares nothing with it", func(ctx SpecContext) {
		neighbour := start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true})
		Expect(neighbour.Config().Host).NotTo(Equal(cluster.Config().Host))
		_, err := clientFor(neighbour.Config()).CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		expectNamespace(ctx, client, namespace)
	}, limit)

	It("loses nothing when its processes are killed and restarted", func(ctx SpecContext) {
		for _, process := range []*localcluster.Process{cluster.Etcd(), cluster.APIServer()} {
			before := process.Pid()
			exited := process.Exited()
			Expect(process.Kill()).To(Succeed())
			Expect(exited).To(BeClosed())
			Expect(process.Running()).To(BeFalse())
			Expect(process.Restart(ctx)).To(Succeed())
			Expect(process.Pid()).NotTo(Equal(before))
		}
		expectNamespace(ctx, client, namespace)
	}, limit)

	It("stops etcd politely while kube-apiserver uses it", func(ctx SpecContext) {
		Expect(cluster.Etcd().Restart(ctx)).To(Succeed())
		Expect(out).NotTo(gbytes.Say("killing it"))
		Eventually(ctx, func() error {
			_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return err
		}).Should(Succeed())
	}, limit)

	It("answers nothing while paused and everything afterwards", func(ctx SpecContext) {
		Expect(cluster.APIServer().Pause()).To(Succeed())
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := client.CoreV1().Namespaces().Get(brief, namespace, metav1.GetOptions{})
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(cluster.APIServer().Resume()).To(Succeed())
		expectNamespace(ctx, client, namespace)
	}, limit)

	It("comes back with its address, its data and its tokens", func(ctx SpecContext) {
		accounts := client.CoreV1().ServiceAccounts(namespace)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
		_, err := accounts.Create(ctx, account, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		token, err := accounts.CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		watch, err := client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()

		Expect(cluster.Stop()).To(Succeed())
		Expect(out).NotTo(gbytes.Say("killing it"), "an open watch held up the shutdown")
		Expect(cluster.APIServer().Restart(ctx)).NotTo(Succeed(), "a stopped control plane stays stopped")
		again := start(ctx, localcluster.Options{Dir: dir})

		expectNamespace(ctx, client, namespace) // the client of before: address and authority are the same
		withToken := rest.AnonymousClientConfig(again.Config())
		withToken.BearerToken = token.Status.Token
		review, err := clientFor(withToken).AuthenticationV1().SelfSubjectReviews().
			Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:" + namespace + ":reader"))
	}, limit)
})

var _ = Describe("a control plane whose parent is killed", func() {
	It("dies with it and can be started again", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), parentDir+"="+dir)
		parent.Stderr = GinkgoWriter
		output, err := parent.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(parent.Start()).To(Succeed())
		DeferCleanup(func() { _ = parent.Process.Kill() })
		line, err := bufio.NewReader(output).ReadBytes('\n')
		Expect(err).NotTo(HaveOccurred())
		var children family
		Expect(json.Unmarshal(line, &children)).To(Succeed())
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
		Expect(err).NotTo(HaveOccurred())
		createNamespace(ctx, clientFor(config), "clinic-elm")

		Expect(parent.Process.Kill()).To(Succeed())
		_ = parent.Wait()

		for _, pid := range []int{children.Etcd, children.APIServer, children.ControllerManager} {
			Eventually(ctx, func() bool { return alive(pid) }).Should(BeFalse())
		}
		again := start(ctx, localcluster.Options{Dir: dir})
		expectNamespace(ctx, clientFor(again.Config()), "clinic-elm")
	}, limit)
})

var _ = DescribeTable("a control plane with controllers", func(ctx SpecContext, options localcluster.Options) {
	options.Dir, options.UnsafeNoFsync = GinkgoT().TempDir(), true
	cluster := start(ctx, options)
	client := clientFor(cluster.Config())

	By("creating default service accounts")
	createNamespace(ctx, client, "clinic-ash")
	Eventually(ctx, func() error {
		_, err := client.CoreV1().ServiceAccounts("clinic-ash").Get(ctx, "default", metav1.GetOptions{})
		return err
	}).Should(Succeed())

	By("computing quotas, and enforcing them")
	const limited = corev1.ResourceName("count/secrets")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{limited: resource.MustParse("1")}},
	}
	_, err := client.CoreV1().ResourceQuotas("clinic-ash").Create(ctx, quota, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	used := func() (string, error) {
		found, err := client.CoreV1().ResourceQuotas("clinic-ash").Get(ctx, "few", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		count := found.Status.Used[limited]
		return count.String() + " of " + strconv.Itoa(len(found.Status.Hard)), nil
	}
	Eventually(ctx, used).Should(Equal("0 of 1"))
	createSecret := func(name string) error {
		_, err := client.CoreV1().Secrets("clinic-ash").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	Expect(createSecret("secret-0")).To(Succeed())
	// A count of the controller that began before that Secret may still replace the number in the status.
	created := 0
	Eventually(ctx, func() error {
		created++
		return createSecret("secret-" + strconv.Itoa(created))
	}).Should(MatchError(apierrors.IsForbidden, "forbidden"))
	Expect(client.CoreV1().Secrets("clinic-ash").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	Eventually(ctx, used).Should(Equal("0 of 1"))

	By("collecting objects whose owner is gone")
	owner, err := client.CoreV1().ConfigMaps("clinic-ash").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	_, err = client.CoreV1().ConfigMaps("clinic-ash").Create(ctx, owned, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(client.CoreV1().ConfigMaps("clinic-ash").Delete(ctx, "owner", metav1.DeleteOptions{})).To(Succeed())
	Eventually(ctx, func() error {
		_, err := client.CoreV1().ConfigMaps("clinic-ash").Get(ctx, "owned", metav1.GetOptions{})
		return err
	}).Should(MatchError(apierrors.IsNotFound, "not found"))

	By("aggregating ClusterRoles")
	rule := rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"animals"}, Verbs: []string{"get"}}
	added := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "animals", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{rule},
	}
	_, err = client.RbacV1().ClusterRoles().Create(ctx, added, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() ([]rbacv1.PolicyRule, error) {
		view, err := client.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return view.Rules, nil
	}).Should(ContainElement(rule))

	By("deleting namespaces with what is in them")
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}
	_, err = client.CoreV1().ConfigMaps("clinic-ash").Create(ctx, content, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(client.CoreV1().Namespaces().Delete(ctx, "clinic-ash", metav1.DeleteOptions{})).To(Succeed())
	Eventually(ctx, func() error {
		_, err := client.CoreV1().Namespaces().Get(ctx, "clinic-ash", metav1.GetOptions{})
		return err
	}).Should(MatchError(apierrors.IsNotFound, "not found"))
},
	Entry("of kube-controller-manager", limit, localcluster.Options{ControllerManager: true}),
	Entry("that a cluster without nodes needs", limit, localcluster.Options{Controllers: true}),
)

var _ = Describe("a control plane that cannot start", func() {
	It("says how to get the binaries it misses", func(ctx SpecContext) {
		_, err := localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), BinDir: GinkgoT().TempDir()})
		Expect(err).To(MatchError(os.ErrNotExist))
		Expect(err).To(MatchError(ContainSubstring("make tools")))
	}, limit)

	It("shows the end of the log and gives its folder back", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		Expect(os.MkdirAll(filepath.Join(dir, "etcd"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "etcd", "member"), nil, 0o600)).To(Succeed())
		for range 2 {
			_, err := localcluster.Start(ctx, localcluster.Options{Dir: dir})
			Expect(err).To(MatchError(And(ContainSubstring("etcd.log"), ContainSubstring("not a directory"))))
			Expect(errors.As(err, new(*dirlock.HeldError))).To(BeFalse(), "error: %v", err)
		}
	}, limit)
})

// alive counts a process that ended as dead even if nobody has collected it yet.
func alive(pid int) bool {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := process.Stat()
	return err == nil && stat.State != "Z"
}
