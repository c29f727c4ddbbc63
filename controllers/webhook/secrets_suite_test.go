package webhook_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
)

// The controller's account has no right to Secrets of all namespaces here.
var _ = Describe("Secrets that the owner of a namespace has to allow", Ordered, func() {
	mayList := func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               serviceAccounts + "paddock-controller",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"},
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}
	BeforeAll(func(ctx SpecContext) {
		stopControllers()
		everywhere := &rbacv1.ClusterRoleBinding{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "paddock-controller-secrets"}, everywhere)).To(Succeed())
		Expect(admin.Delete(ctx, everywhere)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			everywhere.ResourceVersion, everywhere.UID = "", ""
			Expect(admin.Create(ctx, everywhere)).To(Succeed())
			Eventually(mayList).WithContext(ctx).Should(BeTrue())
			stopControllers()
			stopControllers = startControllers(secrets.Cluster)
		})
		Eventually(mayList).WithContext(ctx).Should(BeFalse())
		stopControllers = startControllers(secrets.Namespaced)
	}, NodeTimeout(time.Minute))

	It("are made and read where it did", func(ctx SpecContext) {
		hook, event := newHook(newNamespace(ctx)), newEvent("")
		event.Namespace = hook.Namespace
		Expect(admin.Create(ctx, event)).To(Succeed())
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectAccepted(ctx, hook, "False SecretsForbidden")
		expectActive(ctx, hook, "False NotAccepted")

		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: secrets.Role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: secrets.Role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "paddock-system", Name: "paddock-controller"}},
		})).To(Succeed())
		Eventually(condition(hook, v1alpha1.ConditionActive)).WithContext(ctx).
			WithTimeout(3 * secrets.RetryInterval).Should(Equal("True Active"))
		madeSecret(ctx, hook)

		By("naming the refusal of a Secret that may be read but not created")
		reading := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "reading"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		}
		Expect(admin.Create(ctx, reading)).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: reading.Namespace, Name: "reading"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reading"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "paddock-system", Name: "paddock-controller"}},
		})).To(Succeed())
		unsigned := newHook(reading.Namespace)
		Expect(admin.Create(ctx, unsigned)).To(Succeed())
		Eventually(message(unsigned, v1alpha1.ConditionAccepted)).WithContext(ctx).
			WithTimeout(3 * secrets.RetryInterval).Should(And(HavePrefix("kube-apiserver rejected"), ContainSubstring("cannot create resource")))

		By("and those of other types are none")
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: "other"}}
		Expect(admin.Create(ctx, other)).To(Succeed())
		patch(ctx, hook, `{"spec":{"secretRef":{"name":"other"}}}`)
		expectAccepted(ctx, hook, "False SecretNotFound")
	}, NodeTimeout(2*time.Minute))
})
