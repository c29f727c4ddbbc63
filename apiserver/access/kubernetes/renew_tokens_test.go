package kubernetes

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pass lets time pass: by for the tokens, and reviewTTL of real time for the cache of TokenReviews.
func pass(ctx SpecContext, clock *clock, by time.Duration) {
	GinkgoHelper()
	idle := time.NewTimer(reviewTTL)
	defer idle.Stop()
	Eventually(idle.C).WithContext(ctx).WithTimeout(2 * reviewTTL).Should(Receive())
	clock.advance(by)
}

var _ = Describe("Accepted tokens", func() {
	It("are renewed in the background while they are used, and end when they are refused", func(ctx SpecContext) {
		a, asked, clock := watching(ctx)
		makeAccount(ctx, "temporary", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}})
		token := tokenOf(ctx, "temporary", site.Audience())
		accepted := func() error { _, err := a.Authenticate(ctx, &site, token); return err }
		Expect(accepted()).To(Succeed())
		Expect(asked.tokens.Load()).To(BeEquivalentTo(1))
		pass(ctx, clock, tokenRenewal)
		Eventually(asked.tokens.Load).WithContext(ctx).WithTimeout(5 * time.Second).Should(BeEquivalentTo(2))
		Expect(accepted()).To(Succeed())
		Expect(asked.tokens.Load()).To(BeEquivalentTo(2))
		By("deleting the ServiceAccount")
		Expect(clients.CoreV1().ServiceAccounts("clinic").Delete(ctx, "temporary", metav1.DeleteOptions{})).To(Succeed())
		pass(ctx, clock, tokenRenewal)
		Eventually(asked.tokens.Load).WithContext(ctx).WithTimeout(5 * time.Second).Should(BeEquivalentTo(3))
		Eventually(accepted).WithContext(ctx).WithTimeout(5 * time.Second).Should(beInvalidToken())
	}, SpecTimeout(2*time.Minute))

	It("are not renewed when no request has them", func(ctx SpecContext) {
		a, asked, clock := watching(ctx)
		Expect(a.Authenticate(ctx, &site, tokenOf(ctx, "reader", site.Audience()))).NotTo(BeZero())
		pass(ctx, clock, tokenIdle+tokenRenewal)
		Consistently(asked.tokens.Load).WithContext(ctx).WithTimeout(2 * time.Second).Should(BeEquivalentTo(1))
	}, SpecTimeout(time.Minute))
})
