package site_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
		moveReady(ctx, m).Should(Equal(`False SiteNotReady: Site "oak" was deleted. Create it again with the spec.storage of spec.to of SiteMove "recreated", ` +
			`or delete SiteClaim "moved-recreated" to give up its data.`))

		By("created again as it was before the move")
		old := createSite(ctx, s.Namespace, "oak", "moved-recreated")
		storageOf(ctx, old).Should(Equal("False ForeignRecords: A SiteMove has not ended, and the retained data of the Site is in another storage. " +
			`Delete the Site, and create it with the spec.storage of spec.to of SiteMove "recreated".`))
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		moveReady(ctx, m).Should(HavePrefix(`False SiteNotReady: Site "oak" was created again with a storage that does not have its data.`))
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

var _ = Describe("A move to another namespace", func() {
	// begin moves a Site to the database new of a Site in another namespace, until the last changes are copied.
	begin := func(ctx context.Context, s *v1alpha1.Site) (to *v1alpha1.Site, m *v1alpha1.SiteMove, source, target string) {
		GinkgoHelper()
		if s.Spec.Storage.Postgres != nil {
			source = startExternal(ctx, s.Namespace, "old")
		}
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		to = newSite(newNamespace(ctx), "elm", s.Spec.SiteID, v1alpha1.DeletionRetain)
		to.Spec.Storage = externalStorage("new")
		to.Spec.TakeOver = &v1alpha1.SiteName{Namespace: s.Namespace, Name: s.Name}
		target = startExternal(ctx, to.Namespace, "new")
		Expect(admin.Create(ctx, to)).To(Succeed())
		expectRefused(ctx, to, v1alpha1.ReasonAwaitingMove)
		m = &v1alpha1.SiteMove{Spec: v1alpha1.SiteMoveSpec{SiteName: s.Name, ToSite: &v1alpha1.SiteName{Namespace: to.Namespace, Name: to.Name}}}
		m.Namespace, m.Name = s.Namespace, "across"
		Expect(admin.Create(ctx, m)).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		for _, database := range []string{source, target} {
			if database == "" {
				continue
			}
			executeAt(ctx, database, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '') ON CONFLICT DO NOTHING")
		}
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		return to, m, source, target
	}
	count := func(ctx context.Context, database, table string) (n int) {
		GinkgoHelper()
		conn, err := pgx.Connect(ctx, database)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close(ctx) }()
		Expect(conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n)).To(Succeed())
		return n
	}
	const fences = "pg_trigger WHERE tgname LIKE 'paddock_fence_%'"

	It("is rolled back when the Site is deleted before the switch", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "across-deleted", v1alpha1.DeletionRetain)
		s.Spec.Storage = externalStorage("old")
		to, m, source, target := begin(ctx, s)
		Expect(count(ctx, source, fences)).To(BeNumerically(">", 0))
		deleteAndWait(ctx, s)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(count(ctx, source, fences)).To(BeZero(), "the retained data is not locked")
		Expect(count(ctx, source, "sites")).To(Equal(1))
		Expect(count(ctx, target, "sites")).To(BeZero(), "the copy is deleted")
		Eventually(func() *v1alpha1.SiteMoveReference { return reload(ctx, to).Status.Move }).WithContext(ctx).Should(BeNil())
	})

	It("ends when the Site is deleted during the switch", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "across-switched", v1alpha1.DeletionRetain)
		s.Spec.Storage = externalStorage("old")
		to, m, source, target := begin(ctx, s)
		update(ctx, to.Namespace, to.Name, func(s *v1alpha1.Site) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.PausedAnnotation, "") })
		copied(ctx, m, v1alpha1.MoveCatchingUp)
		Eventually(func() string { return get[v1alpha1.SiteClaim](ctx, "", s.Spec.SiteID).Spec.SiteRef.Namespace }).WithContext(ctx).Should(Equal(to.Namespace))
		Expect(get[v1alpha1.SiteClaim](ctx, "", s.Spec.SiteID).Spec.External.Name).To(Equal("new"))
		deleteAndWait(ctx, s)
		update(ctx, to.Namespace, to.Name, func(s *v1alpha1.Site) { delete(s.Annotations, v1alpha1.PausedAnnotation) })
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, to)
		copied(ctx, m, v1alpha1.MoveSwitched)
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
		Expect(count(ctx, source, "sites")).To(BeZero())
		Expect(count(ctx, target, "sites")).To(Equal(1))
	})

	It("does not write the storage of its class to the former Site", func(ctx SpecContext) {
		startController(ctx)
		class := &v1alpha1.SiteClass{}
		class.Name = "across"
		Expect(admin.Create(ctx, class)).To(Succeed())
		s := newSite(newNamespace(ctx), "oak", "across-class", v1alpha1.DeletionRetain)
		s.Spec.ClassName = ptr.To("across")
		to, m, _, _ := begin(ctx, s)
		update(ctx, "", "across", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{
				Databases: []v1alpha1.PoolDatabase{{Name: "none", SecretRef: v1alpha1.DSNReference{Name: "none"}, Capacity: ptr.To[int32](1)}},
			}}}
		})
		copied(ctx, m, v1alpha1.MoveCatchingUp)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, to)
		expectRefused(ctx, s, v1alpha1.ReasonMoved)
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		reportCopied(ctx, m, v1alpha1.MoveBack, v1alpha1.MoveCopying, "done")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		reportCopied(ctx, m, v1alpha1.MoveBack, v1alpha1.MoveCatchingUp, "done")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRollingBack))
		reportCopied(ctx, m, v1alpha1.MoveBack, v1alpha1.MoveRollingBack, "done")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		expectReady(ctx, s)
	})
})
