package site_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("Claims", func() {
	It("gives a free siteID and namespace to the Site", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "first")
		expectReady(ctx, s)

		s = reload(ctx, s)
		Expect(s.Status.SiteID).To(Equal("first"))
		Expect(s.Status.URL).To(Equal(publicURL + "/site/first"))
		claim := get[v1alpha1.SiteClaim](ctx, "", "first")
		Expect(claim.HeldBy(s)).To(BeTrue())
		Expect(claim.Spec.SiteKey).To(MatchRegexp(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`))
		Expect(s.Status.SiteKey).To(Equal(claim.Spec.SiteKey))
		Expect(get[v1alpha1.NamespaceClaim](ctx, "", s.Namespace).HeldBy(s)).To(BeTrue())
	})

	It("takes metadata.name for a siteID that is not given", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "named-by-its-object", "")
		expectReady(ctx, s)
		Expect(get[v1alpha1.SiteClaim](ctx, "", "named-by-its-object").HeldBy(s)).To(BeTrue())
	})

	It("refuses a siteID that another namespace holds, and does not say which", func(ctx SpecContext) {
		startController(ctx)
		holder := createSite(ctx, newNamespace(ctx), "oak", "wanted-by-two")
		expectReady(ctx, holder)
		waiter := createSite(ctx, newNamespace(ctx), "elm", "wanted-by-two")
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)

		waiter = reload(ctx, waiter)
		accepted := meta.FindStatusCondition(waiter.Status.Conditions, v1alpha1.ConditionAccepted)
		Expect(accepted.Message).To(And(
			ContainSubstring(`SiteClaim "wanted-by-two"`), Not(ContainSubstring(holder.Namespace)), Not(ContainSubstring(holder.Name))))
		Expect(waiter.Status.SiteID).To(Equal("wanted-by-two"))
		Expect(waiter.Status.URL).To(BeEmpty(), "the address is that of another clinic")
		Expect(waiter.Status.SiteKey).To(BeEmpty())
		for kind, want := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReady:        metav1.ConditionFalse,
			v1alpha1.ConditionStalled:      metav1.ConditionTrue,
			v1alpha1.ConditionReconciling:  metav1.ConditionFalse,
			v1alpha1.ConditionStorageReady: metav1.ConditionFalse,
		} {
			Expect(meta.IsStatusConditionPresentAndEqual(waiter.Status.Conditions, kind, want)).To(BeTrue(), "%s should be %s", kind, want)
		}
	})

	It("keeps a retained siteID from others until an administrator frees it, which wakes them", func(ctx SpecContext) {
		startController(ctx)
		holder := createSite(ctx, newNamespace(ctx), "oak", "retained")
		expectReady(ctx, holder)
		key := get[v1alpha1.SiteClaim](ctx, "", "retained").Spec.SiteKey
		deleteAndWait(ctx, holder)

		waiter := createSite(ctx, newNamespace(ctx), "elm", "retained")
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)
		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "retained"))).To(Succeed())
		expectReady(ctx, waiter)
		Expect(get[v1alpha1.SiteClaim](ctx, "", "retained").Spec.SiteKey).NotTo(Equal(key), "the new holder must not meet the old data")
	})

	It("gives retained data back to a Site of the same namespace and name", func(ctx SpecContext) {
		startController(ctx)
		namespace := newNamespace(ctx)
		before := createSite(ctx, namespace, "oak", "adopted")
		expectReady(ctx, before)
		key := get[v1alpha1.SiteClaim](ctx, "", "adopted").Spec.SiteKey
		deleteAndWait(ctx, before)

		after := createSite(ctx, namespace, "oak", "adopted")
		expectReady(ctx, after)
		claim := get[v1alpha1.SiteClaim](ctx, "", "adopted")
		Expect(claim.HeldBy(after)).To(BeTrue())
		Expect(claim.Spec.SiteKey).To(Equal(key))
		Expect(get[v1alpha1.NamespaceClaim](ctx, "", namespace).HeldBy(after)).To(BeTrue())
	})

	It("refuses a second Site in a namespace until the first is deleted with its data", func(ctx SpecContext) {
		startController(ctx)
		namespace := newNamespace(ctx)
		first := newSite(namespace, "oak", "namespace-first", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, first)).To(Succeed())
		expectReady(ctx, first)
		second := createSite(ctx, namespace, "elm", "namespace-second")
		expectRefused(ctx, second, v1alpha1.ReasonNamespaceOccupied)
		sameID := createSite(ctx, namespace, "ash", "namespace-first")
		expectRefused(ctx, sameID, v1alpha1.ReasonNamespaceOccupied)

		deleteAndWait(ctx, sameID)
		deleteAndWait(ctx, first)
		expectReady(ctx, second)
	})

	It("refuses another Site in a namespace with retained data until the SiteClaim is deleted", func(ctx SpecContext) {
		startController(ctx)
		namespace := newNamespace(ctx)
		first := createSite(ctx, namespace, "oak", "left-behind")
		expectReady(ctx, first)
		deleteAndWait(ctx, first)

		otherName := createSite(ctx, namespace, "elm", "left-behind")
		expectRefused(ctx, otherName, v1alpha1.ReasonNamespaceOccupied)
		deleteAndWait(ctx, otherName)
		otherSiteID := createSite(ctx, namespace, "elm", "moved-in")
		expectRefused(ctx, otherSiteID, v1alpha1.ReasonNamespaceOccupied)

		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "left-behind"))).To(Succeed())
		expectReady(ctx, otherSiteID)
	})

	It("refuses a Site with another siteID than the retained data of its name, whether the NamespaceClaim exists or not", func(ctx SpecContext) {
		startController(ctx)
		namespace := newNamespace(ctx)
		first := createSite(ctx, namespace, "oak", "kept-siteid")
		expectReady(ctx, first)
		deleteAndWait(ctx, first)

		other := createSite(ctx, namespace, "oak", "changed-siteid")
		expectRefused(ctx, other, v1alpha1.ReasonNamespaceOccupied)
		deleteAndWait(ctx, other)
		Expect(admin.Delete(ctx, get[v1alpha1.NamespaceClaim](ctx, "", namespace))).To(Succeed())
		other = createSite(ctx, namespace, "oak", "changed-siteid")
		expectRefused(ctx, other, v1alpha1.ReasonNamespaceOccupied)

		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "kept-siteid"))).To(Succeed())
		expectReady(ctx, other)
	})

	It("gives the namespace of a Site that was never accepted to its neighbour", func(ctx SpecContext) {
		startController(ctx)
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "oak", "hard-to-get"))
		namespace := newNamespace(ctx)
		hopeless := createSite(ctx, namespace, "elm", "hard-to-get")
		expectRefused(ctx, hopeless, v1alpha1.ReasonSiteIDTaken)
		neighbour := createSite(ctx, namespace, "ash", "easy-to-get")
		expectRefused(ctx, neighbour, v1alpha1.ReasonNamespaceOccupied)

		deleteAndWait(ctx, hopeless)
		expectReady(ctx, neighbour)
	})

	It("follows an administrator who gives a siteID to another Site", func(ctx SpecContext) {
		startController(ctx)
		from := createSite(ctx, newNamespace(ctx), "oak", "reassigned")
		expectReady(ctx, from)
		to := createSite(ctx, newNamespace(ctx), "elm", "reassigned")
		expectRefused(ctx, to, v1alpha1.ReasonSiteIDTaken)

		update(ctx, "", "reassigned", func(c *v1alpha1.SiteClaim) {
			c.Spec.SiteRef = v1alpha1.SiteReference{Namespace: to.Namespace, Name: to.Name, UID: "unknown"}
		})
		expectReady(ctx, to)
		expectRefused(ctx, from, v1alpha1.ReasonSiteIDTaken)
	})

	It("makes a deleted claim again for the Site that is there", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "claimed-twice")
		expectReady(ctx, s)
		claim := get[v1alpha1.SiteClaim](ctx, "", "claimed-twice")
		Expect(admin.Delete(ctx, claim)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			again := &v1alpha1.SiteClaim{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(claim), again)).To(Succeed())
			g.Expect(again.Spec.SiteKey).NotTo(Equal(claim.Spec.SiteKey))
			g.Expect(reload(ctx, s).Status.SiteKey).To(Equal(again.Spec.SiteKey))
		}).WithContext(ctx).Should(Succeed())

		namespaceClaim := get[v1alpha1.NamespaceClaim](ctx, "", s.Namespace)
		Expect(admin.Delete(ctx, namespaceClaim)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			again := &v1alpha1.NamespaceClaim{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(namespaceClaim), again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(namespaceClaim.UID))
			g.Expect(again.HeldBy(s)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	})

	It("lets names decide, not times, when all is restored from a backup", func(ctx SpecContext) {
		stop := startController(ctx)
		holder := createSite(ctx, newNamespace(ctx), "oak", "restored")
		expectReady(ctx, holder)
		waiter := createSite(ctx, newNamespace(ctx), "elm", "restored")
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)
		neighbour := createSite(ctx, holder.Namespace, "ash", "restored-neighbour")
		expectRefused(ctx, neighbour, v1alpha1.ReasonNamespaceOccupied)
		stop()

		// The claims come back with the uid of Sites that are no more, and the
		// holder is the youngest of the Sites.
		for _, s := range []*v1alpha1.Site{holder, waiter, neighbour} {
			deleteAndWait(ctx, s)
		}
		startController(ctx)
		waiter = createSite(ctx, waiter.Namespace, waiter.Name, waiter.Spec.SiteID)
		neighbour = createSite(ctx, neighbour.Namespace, neighbour.Name, neighbour.Spec.SiteID)
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)
		expectRefused(ctx, neighbour, v1alpha1.ReasonNamespaceOccupied)
		holder = createSite(ctx, holder.Namespace, holder.Name, holder.Spec.SiteID)
		expectReady(ctx, holder)
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)
		expectRefused(ctx, neighbour, v1alpha1.ReasonNamespaceOccupied)
	})
})
