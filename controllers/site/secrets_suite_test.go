package site_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// may reports what kube-apiserver lets the controller do with Secrets of a namespace.
func may(verb, namespace string) func(context.Context) (bool, error) {
	return hasRight(controllerUser, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "secrets"})
}

// bind is what the owner of a namespace is told to do.
func bind(ctx context.Context, namespace string) *rbacv1.RoleBinding {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secrets.Role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: secrets.Role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: "paddock-controller"}},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	Eventually(may("get", namespace)).WithContext(ctx).Should(BeTrue())
	return binding
}

// The controller's account has no right to Secrets of all namespaces here.
var _ = Describe("Secrets that the owner of a namespace has to allow", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		everywhere := get[rbacv1.ClusterRoleBinding](ctx, "", "paddock-controller-secrets")
		Expect(admin.Delete(ctx, everywhere)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			everywhere.ResourceVersion, everywhere.UID = "", ""
			Expect(admin.Create(ctx, everywhere)).To(Succeed())
			Eventually(may("list", "")).WithContext(ctx).Should(BeTrue())
		})
		Eventually(may("list", "")).WithContext(ctx).Should(BeFalse())
	}, NodeTimeout(time.Minute))
	BeforeEach(func(ctx SpecContext) { startControllerWith(ctx, secrets.Namespaced) })

	accepted := func(ctx context.Context, s *v1alpha1.Site) metav1.Condition {
		GinkgoHelper()
		c := meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionAccepted)
		Expect(c).NotTo(BeNil())
		return *c
	}

	It("are asked for, found without a restart, and read again", func(ctx SpecContext) {
		s := newSite(newNamespace(ctx), "oak", "asks", v1alpha1.DeletionRetain)
		s.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
			External: &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: "db"}},
		}}
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectRefused(ctx, s, v1alpha1.ReasonSecretsForbidden)
		Expect(accepted(ctx, s).Message).To(ContainSubstring("kubectl create rolebinding paddock-site-secrets --namespace=" + s.Namespace +
			" --clusterrole=paddock-site-secrets --serviceaccount=paddock-system:paddock-controller"))
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True SecretsForbidden"))

		By("going on by itself")
		bind(ctx, s.Namespace)
		Eventually(condition(s, v1alpha1.ConditionStorageReady)).WithContext(ctx).
			WithTimeout(2 * secrets.RetryInterval).Should(Equal("False SecretNotFound"))
		Expect(accepted(ctx, s).Status).To(Equal(metav1.ConditionTrue))
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}, Type: v1alpha1.SecretTypeDSN,
			StringData: map[string]string{"uri": "mysql://a"},
		}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionStorageReady)).WithContext(ctx).
			WithTimeout(2 * secrets.RetryInterval).Should(Equal("False InvalidSecret"))
	}, NodeTimeout(3*time.Minute))

	It("are not needed by a Site that has none", func(ctx SpecContext) {
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "oak", "asks-nothing"))
	})

	It("are made for a database of its own, and removed with it", func(ctx SpecContext) {
		s := newProvisionedSite(newNamespace(ctx), "asks-to-make", v1alpha1.EngineStatefulSet)
		s.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectRefused(ctx, s, v1alpha1.ReasonSecretsForbidden)
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())

		binding := bind(ctx, s.Namespace)
		touch(ctx, s) // instead of the next look
		storageOf(ctx, s).Should(HavePrefix("False Provisioning"))
		secret := get[corev1.Secret](ctx, s.Namespace, provision.Name)
		serve(ctx, secret, settingsOf(get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name)))
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)

		By("keeping what is known of the data while the right is gone")
		key := reload(ctx, s).Status.SiteKey
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Eventually(may("get", s.Namespace)).WithContext(ctx).Should(BeFalse())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak" })
		expectRefused(ctx, s, v1alpha1.ReasonSecretsForbidden)
		Expect(reload(ctx, s).Status.SiteKey).To(Equal(key))
		Expect(condition(s, v1alpha1.ConditionStorageReady)(ctx)).To(Equal("True PostgresStorage"))

		By("waiting for it to delete the database")
		claim := get[v1alpha1.SiteClaim](ctx, "", "asks-to-make")
		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(func(ctx context.Context) (string, error) {
			now := &v1alpha1.Site{}
			err := admin.Get(ctx, client.ObjectKeyFromObject(s), now)
			c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReconciling)
			if err != nil || c == nil {
				return "", err
			}
			return c.Message, nil
		}).WithContext(ctx).Should(ContainSubstring("The database cannot be deleted. The controller has no right to use Secrets"))
		bind(ctx, s.Namespace)
		gone := func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKeyFromObject(s), &v1alpha1.Site{})
		}
		Eventually(gone).WithContext(ctx).WithTimeout(3 * secrets.RetryInterval).ShouldNot(Succeed())
		expectGone(ctx, claim)
	}, NodeTimeout(3*time.Minute))

	It("are asked for as a Site is applied", func(ctx SpecContext) {
		startWebhook(ctx)
		var applied heard
		config := rest.CopyConfig(cluster.Config())
		config.WarningHandler = &applied
		user, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		namespace := newNamespace(ctx)
		Eventually(func(ctx context.Context) ([]string, error) {
			applied.warnings = nil
			err := user.Create(ctx, newProvisionedSite(namespace, "asks-early", v1alpha1.EngineStatefulSet), client.DryRunAll)
			return applied.warnings, err
		}).WithContext(ctx).Should(ConsistOf(ContainSubstring("spec.storage.postgres: SecretsForbidden: The controller has no right to use Secrets")))
	})
})
