package acceptance

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

var _ = Describe("AwaitPolicies", Serial, func() {
	It("returns when policies that were stored a moment ago are enforced", func(ctx SpecContext) {
		config, err := cluster.UserConfig("system:serviceaccount:paddock-system:paddock-controller")
		Expect(err).NotTo(HaveOccurred())
		controller, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		forbidden := func(ctx context.Context) error {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "forbidden"}}
			_, err := controller.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		kubectl(ctx, "delete", "validatingadmissionpolicybinding", "--selector", "app.kubernetes.io/part-of=paddock")
		DeferCleanup(func(ctx SpecContext) {
			Expect(paddock.Apply(ctx, filepath.Join("config", "base"))).To(Succeed())
		})
		Eventually(forbidden).WithContext(ctx).Should(Succeed())

		Expect(paddock.Apply(ctx, filepath.Join("config", "base"))).To(Succeed())
		Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(Succeed())
		Expect(forbidden(ctx)).To(MatchError(ContainSubstring("paddock-secrets")))
		Expect(paddock.Kubectl(ctx, "get", "siteclaims", "policy-probe", "--ignore-not-found")).To(BeEmpty())
	})

	It("fails where it has no probe for a policy", func(ctx SpecContext) {
		admin, err := kubernetes.NewForConfig(cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		bindings := admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		_, err = bindings.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "unprobed"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "unprobed", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(bindings.Delete(ctx, "unprobed", metav1.DeleteOptions{})).To(Succeed()) })
		Expect(localpaddock.AwaitPolicies(ctx, cluster)).To(MatchError(ContainSubstring(`no probe for policy "unprobed"`)))
	})
})
