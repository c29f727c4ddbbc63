package site_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("A move whose Site is deleted", func() {
	It("is rolled back if the Site is deleted before the switch, and a Site that is created again works", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "moved-deleted", v1alpha1.DeletionRetain)
		former, target := startExternal(ctx, s.Namespace, "former"), startExternal(ctx, s.Namespace, "target")
		s.Spec.Storage = externalStorage("former")
		again := s.DeepCopy()
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		executeAt(ctx, former, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '')")
		m := createMove(ctx, s, "deleted", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		executeAt(ctx, target, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '')")
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		const fences = "(SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'paddock_fence_%')"
		executeAt(ctx, former, "DO $$ BEGIN ASSERT "+fences+" > 0; END $$")
		deleteAndWait(ctx, s)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		moveReady(ctx, m).Should(HavePrefix("False RolledBack: The Site was deleted during the move."))
		executeAt(ctx, former, "DO $$ BEGIN ASSERT "+fences+" = 0; END $$")
		executeAt(ctx, target, "DO $$ BEGIN ASSERT (SELECT count(*) FROM sites) = 0; END $$")
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(reload(ctx, again).Status.SiteKey).To(Equal(key))
	})

	It("waits for the Site if it is deleted after the switch, and keeps it from the former storage", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-recreated")
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "recreated", externalStorage("target"))
		switchTo(ctx, m)
		copied(ctx, m, v1alpha1.MoveSwitched)
		deleteAndWait(ctx, s)
		moveReady(ctx, m).Should(Equal(`False SiteNotReady: The Site "oak" was deleted. Create it again with the spec.storage of spec.to of SiteMove "recreated", ` +
			`or delete SiteClaim "moved-recreated" to give up its data.`))

		By("created again as it was before the move")
		old := createSite(ctx, s.Namespace, "oak", "moved-recreated")
		storageOf(ctx, old).Should(Equal("False ForeignRecords: A SiteMove has not ended, and the retained data of the Site is in another storage. " +
			`Delete the Site, and create it with the spec.storage of spec.to of SiteMove "recreated".`))
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		moveReady(ctx, m).Should(HavePrefix(`False SiteNotReady: The Site "oak" was created again with a storage that does not have its data.`))
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).To(HaveKey(v1alpha1.FencedLabel))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase).To(Equal(v1alpha1.MoveSwitched))
		deleteAndWait(ctx, old)

		By("created again with the new storage")
		right := newSite(s.Namespace, "oak", "moved-recreated", v1alpha1.DeletionRetain)
		right.Spec.Storage = externalStorage("target")
		Expect(admin.Create(ctx, right)).To(Succeed())
		expectReady(ctx, right)
		Expect(reload(ctx, right).Status.SiteKey).To(Equal(key))
		copied(ctx, m, v1alpha1.MoveSwitched)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
	})

	It("ends if the data is deleted with the Site", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-erased")
		expectReady(ctx, s)
		startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "erased", externalStorage("target"))
		switchTo(ctx, m)
		deleteAndWait(ctx, s)
		moveReady(ctx, m).Should(HavePrefix("False SiteNotReady: "))
		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "moved-erased"))).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		deleteAndWait(ctx, m)
	})
})
