package acceptance

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A right of RBAC", func() {
	// seen is how long API servers take to see a change of a binding. Rights that are cached without watching
	// bindings count for ten seconds.
	const seen = 5 * time.Second

	It("ends and begins at all API servers when its binding is removed and created", func(ctx SpecContext) {
		kubectl(ctx, "create", "serviceaccount", "temporary", "-n", "demo")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "serviceaccount", "temporary", "-n", "demo") })
		token, err := paddock.Token(ctx, "demo", "temporary", "paddock.health/demo/demo", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		status := func(url string) func() int {
			return func() int {
				return send(request{method: "GET", url: url + "/site/demo/fhir/patient", token: token}).status
			}
		}
		bind := func() {
			kubectl(ctx, "create", "rolebinding", "temporary", "-n", "demo", "--clusterrole=paddock-editor", "--serviceaccount=demo:temporary")
		}
		unbind := func(ctx SpecContext) {
			kubectl(ctx, "delete", "rolebinding", "temporary", "-n", "demo", "--ignore-not-found")
		}
		DeferCleanup(unbind)
		for _, url := range paddock.URLs[:2] {
			Expect(status(url)()).To(Equal(http.StatusForbidden))
		}
		bind()
		for _, url := range paddock.URLs[:2] {
			Eventually(status(url)).WithContext(ctx).WithTimeout(seen).Should(Equal(http.StatusOK))
		}
		By("waiting until rights are cached for minutes")
		settled := time.NewTimer(11 * time.Second)
		defer settled.Stop()
		Eventually(settled.C).WithContext(ctx).Should(Receive())
		for _, url := range paddock.URLs[:2] {
			Expect(status(url)()).To(Equal(http.StatusOK))
		}
		unbind(ctx)
		for _, url := range paddock.URLs[:2] {
			Eventually(status(url)).WithContext(ctx).WithTimeout(seen).Should(Equal(http.StatusForbidden))
		}
	}, SpecTimeout(3*time.Minute))
})
