package site_test

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localissuer"
	"github.com/paddock-health/paddock/hack/dev/module"
)

var _ = Describe("Issuers of a Site", func() {
	It("are ready when their keys can be had, and the Site is Ready without", func(ctx SpecContext) {
		startController(ctx)
		bin, err := module.Bin()
		Expect(err).NotTo(HaveOccurred())
		issuer, err := localissuer.Start(ctx, filepath.Join(bin, "issuer"), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred(), "the program comes from `make issuer`")
		DeferCleanup(issuer.Stop)

		s := newSite(newNamespace(ctx), "oak", "issuers", v1alpha1.DeletionRetain)
		s.Spec.Access.Issuers = []v1alpha1.Issuer{{Name: "clinic", URL: issuer.URL, CABundle: []byte(issuer.CA), Audiences: []string{"oak"}}}
		Expect(admin.Create(ctx, s)).To(Succeed())
		ready := func(want string) {
			GinkgoHelper()
			Eventually(condition(s, v1alpha1.ConditionIssuersReady)).WithContext(ctx).Should(Equal(want))
			expectReady(ctx, s)
		}
		change := func(c func(*v1alpha1.Issuer)) {
			GinkgoHelper()
			update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { c(&s.Spec.Access.Issuers[0]) })
		}
		ready("True KeysKnown")
		fetched, err := issuer.Fetches(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(fetched).To(Equal(1), "however often the Site is reconciled")

		By("a certificate that is not trusted")
		change(func(i *v1alpha1.Issuer) { i.CABundle = nil })
		ready("False IssuerUnreachable")
		Expect(messageOf(ctx, s)).To(And(ContainSubstring(`issuer "clinic"`), ContainSubstring("caBundle")))

		By("a network that the operator does not allow")
		change(func(i *v1alpha1.Issuer) { i.URL = "https://127.0.0.2:443" })
		ready("False IssuerNotAllowed")
		Expect(messageOf(ctx, s)).To(ContainSubstring("--issuer-networks"))

		By("keys that are none")
		change(func(i *v1alpha1.Issuer) { i.JWKS = `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}` })
		ready("False InvalidIssuer")
		Expect(messageOf(ctx, s)).NotTo(ContainSubstring("c2VjcmV0"))

		By("an issuer that is down for a while")
		Expect(issuer.Stop()).To(Succeed())
		change(func(i *v1alpha1.Issuer) { i.URL, i.CABundle, i.JWKS = issuer.URL, []byte(issuer.CA), "" })
		ready("False IssuerUnreachable")
		Expect(issuer.Resume(ctx)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionIssuersReady)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("True KeysKnown"))

		By("no issuers any more")
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.Access.Issuers = nil })
		ready("none")
	})
})

// messageOf is the message of IssuersReady.
func messageOf(ctx context.Context, s *v1alpha1.Site) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionIssuersReady)
	Expect(c).NotTo(BeNil())
	return c.Message
}
