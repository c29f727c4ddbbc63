package kubernetes

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("Accepted tokens", func() {
	It("are renewed in the background when they are used, and end when they are refused", func(ctx SpecContext) {
		a, asked := newCounted()
		clock := newClock()
		a.now = clock.now
		makeAccount(ctx, "temporary", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}})
		token := tokenOf(ctx, "temporary", site.Audience())
		accepted := func() error { _, err := a.Authenticate(ctx, &site, token); return err }
		// pass lets time pass: tokenRenewal for the token, and reviewTTL of real time for the cache of TokenReviews.
		pass := func() {
			idle := time.NewTimer(reviewTTL)
			defer idle.Stop()
			Eventually(idle.C).WithContext(ctx).WithTimeout(2 * reviewTTL).Should(Receive())
			clock.advance(tokenRenewal)
		}
		Expect(accepted()).To(Succeed())
		pass()
		release := asked.hold()
		Expect(accepted()).To(Succeed(), "without the review, which has no answer yet")
		release()
		// A review is counted when it begins. It must have its answer before the account is deleted.
		Eventually(a.renewals).WithContext(ctx).Should(BeEmpty())
		Expect(accepted()).To(Succeed())
		Expect(asked.tokens.Load()).To(BeEquivalentTo(2))
		Expect(clients.CoreV1().ServiceAccounts("clinic").Delete(ctx, "temporary", metav1.DeleteOptions{})).To(Succeed())
		pass()
		Expect(accepted()).To(Succeed(), "until the review has an answer")
		Eventually(accepted).WithContext(ctx).Should(beInvalidToken())
		Expect(asked.tokens.Load()).To(BeEquivalentTo(3))
	}, SpecTimeout(2*time.Minute))
})
