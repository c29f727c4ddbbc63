package site_test

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

var _ = Describe("A move", func() {
	It("to a provisioned database, and from there to an external one", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-in")
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		m := createMove(ctx, s, "in", provisionedStorage(v1alpha1.EngineStatefulSet))
		moveReady(ctx, m).Should(HavePrefix("False Provisioning: "))
		Expect(meta.IsStatusConditionTrue(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Conditions, v1alpha1.ConditionStalled)).To(BeFalse(), "the move waits for the database, and needs no person")
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		server := serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name), settingsOf(get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name)))
		setPod(ctx, s.Namespace, podReady)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))

		By("switching to it")
		execute(ctx, server, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '')") // as the API server that copies does
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		copied(ctx, m, v1alpha1.MoveCatchingUp)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, s)
		Expect(reload(ctx, s).Spec.Storage.Postgres.Provisioned).NotTo(BeNil())
		Expect(reload(ctx, s).Status.SiteKey).To(Equal(key))
		published := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace))
		Expect(string(published.Data["uri"])).To(ContainSubstring("@paddock-postgres." + s.Namespace + ".svc:5432/paddock"))
		copied(ctx, m, v1alpha1.MoveSwitched)
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
		expectReady(ctx, s)
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(6))

		By("moving to an external database")
		external := startExternal(ctx, s.Namespace, "outside")
		out := createMove(ctx, s, "out", externalStorage("outside"))
		movePhase(ctx, out).Should(Equal(v1alpha1.MoveCopying))
		executeAt(ctx, external, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '')")
		copied(ctx, out, v1alpha1.MoveCopying)
		movePhase(ctx, out).Should(Equal(v1alpha1.MoveCatchingUp))
		var fences int
		conn, err := pgx.Connect(ctx, server.URL("paddock"))
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.QueryRow(ctx, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'paddock_fence_%'").Scan(&fences)).To(Succeed())
		Expect(conn.Close(ctx)).To(Succeed())
		Expect(fences).To(BeNumerically(">", 0), "the provisioned database is fenced")
		update(ctx, s.Namespace, "outside", func(secret *corev1.Secret) { // the certificate or password is renewed
			renewed, err := url.Parse(external)
			Expect(err).NotTo(HaveOccurred())
			renewed.User = url.UserPassword(renewed.User.Username(), "renewed")
			secret.Data["uri"] = []byte(renewed.String())
		})
		copied(ctx, out, v1alpha1.MoveCatchingUp)
		movePhase(ctx, out).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, s)
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(6), "the former database, until the move is confirmed")
		copied(ctx, out, v1alpha1.MoveSwitched)
		decideMove(ctx, out, v1alpha1.MoveConfirm)
		movePhase(ctx, out).Should(Equal(v1alpha1.MoveCompleted))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		expectReady(ctx, s)
	})

	It("gives a provisioned database no password of the database that it leaves", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "moved-secretly", v1alpha1.DeletionRetain)
		startExternal(ctx, s.Namespace, "former")
		s.Spec.Storage = externalStorage("former")
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		m := createMove(ctx, s, "secret", provisionedStorage(v1alpha1.EngineStatefulSet))
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		moveReady(ctx, m).Should(HavePrefix("False Provisioning: "))
		Expect(admin.Delete(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name))).To(Succeed())
		moveReady(ctx, m).Should(Equal(`False SecretNotFound: Secret "paddock-postgres" with the password of the database does not exist. Restore the Secret.`))
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(5), "all but the Secret")
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
	})

	It("never deletes the database that serves the Site", func(ctx SpecContext) {
		stop := startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "moved-kept", v1alpha1.EngineStatefulSet)
		Expect(admin.Create(ctx, s)).To(Succeed())
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name), settingsOf(get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name)))
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)
		stop() // so that it does not choose another database for the move
		m := &v1alpha1.SiteMove{Spec: v1alpha1.SiteMoveSpec{SiteName: s.Name, To: provisionedStorage(v1alpha1.EngineStatefulSet)}}
		m.Namespace, m.Name = s.Namespace, "stale"
		m.Finalizers = []string{v1alpha1.SiteMoveFinalizer}
		Expect(admin.Create(ctx, m)).To(Succeed())
		m.Status.Phase, m.Status.Direction, m.Status.ProvisionedName = v1alpha1.MovePending, v1alpha1.MoveForward, provision.Name
		Expect(admin.Status().Update(ctx, m)).To(Succeed())
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		startController(ctx)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(6))
	})

	It("deletes the database that it has provisioned, and no other, when it is given up", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-back")
		expectReady(ctx, s)
		kept := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		kept.Namespace, kept.Name = s.Namespace, provision.Name
		kept.Labels = map[string]string{v1alpha1.SiteKeyLabel: reload(ctx, s).Status.SiteKey}
		Expect(admin.Create(ctx, kept)).To(Succeed())
		m := createMove(ctx, s, "occupied", provisionedStorage(v1alpha1.EngineStatefulSet))
		moveReady(ctx, m).Should(HavePrefix("False TargetOccupied: The namespace has a database paddock-postgres"))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.Name).DeletionTimestamp).To(BeNil())
		deleteAndWait(ctx, kept)

		By("before it runs")
		m = createMove(ctx, s, "early", provisionedStorage(v1alpha1.EngineStatefulSet))
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())

		By("before it runs, after the Site was deleted")
		m = createMove(ctx, s, "orphaned", provisionedStorage(v1alpha1.EngineStatefulSet))
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		deleteAndWait(ctx, s)
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		s = createSite(ctx, s.Namespace, "oak", "moved-back")
		expectReady(ctx, s)

		By("while it is copied to")
		m = createMove(ctx, s, "late", provisionedStorage(v1alpha1.EngineStatefulSet))
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name), nil)
		setPod(ctx, s.Namespace, podReady)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		expectReady(ctx, s)
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
	})
})

var _ = Describe("A move from one provisioned database to another", func() {
	It("goes there and back, and the Site keeps the new one", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "upgraded", v1alpha1.EngineStatefulSet)
		Expect(admin.Create(ctx, s)).To(Succeed())
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name), nil)
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		first, before := versions(databaseOf(ctx, s.Namespace)), reload(ctx, s).Spec.Storage
		second := func(ctx context.Context) []client.Object {
			return databaseNamed(ctx, s.Namespace, provision.SecondName)
		}
		to := provisionedStorage(v1alpha1.EngineStatefulSet)
		to.Postgres.Provisioned.Version = "18"
		to.Postgres.Provisioned.Storage.Size = ptr.To(resource.MustParse("5Gi"))
		begin := func(name string) *v1alpha1.SiteMove {
			GinkgoHelper()
			m := createMove(ctx, s, name, to)
			Eventually(second).WithContext(ctx).Should(HaveLen(6))
			server := serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.SecondName), nil)
			setPodOf(ctx, s.Namespace, provision.SecondName, podReady)
			movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
			execute(ctx, server, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', '')") // as the API server that copies does
			return m
		}
		finish := func(m *v1alpha1.SiteMove, direction v1alpha1.MoveDirection) {
			GinkgoHelper()
			reportCopied(ctx, m, direction, v1alpha1.MoveCopying, "done")
			movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
			reportCopied(ctx, m, direction, v1alpha1.MoveCatchingUp, "done")
		}
		connection := func(ctx context.Context) string {
			return string(get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace)).Data["uri"])
		}

		By("rolling it back before the switch")
		m := begin("given-up")
		for _, object := range second(ctx) {
			Expect(object.GetLabels()).To(HaveKeyWithValue(v1alpha1.SiteKeyLabel, key))
			Expect(object.GetOwnerReferences()).To(BeEmpty())
		}
		pod := get[corev1.Pod](ctx, s.Namespace, provision.PodName(provision.SecondName))
		Expect(pod.Spec.Containers[0].Image).To(HaveSuffix(":18"))
		Expect(get[corev1.Service](ctx, s.Namespace, provision.Name).Spec.Selector).NotTo(HaveKeyWithValue("app.kubernetes.io/instance", pod.Labels["app.kubernetes.io/instance"]))
		Expect(get[networkingv1.NetworkPolicy](ctx, s.Namespace, provision.SecondName).Spec.PodSelector.MatchLabels).To(HaveKeyWithValue("app.kubernetes.io/instance", provision.SecondName))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(second(ctx)).To(BeEmpty())

		By("returning after the switch")
		m = begin("returned")
		finish(m, v1alpha1.MoveForward)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, s)
		Eventually(connection).WithContext(ctx).Should(ContainSubstring("@paddock-postgres-b." + s.Namespace + ".svc:5432/paddock"))
		Expect(reload(ctx, s).Spec.Storage.Postgres.Provisioned.Name).To(Equal(provision.SecondName))
		Expect(reload(ctx, s).Spec.Storage.Postgres.Provisioned.Version).To(Equal("18"))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		finish(m, v1alpha1.MoveBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRollingBack))
		Expect(second(ctx)).To(HaveLen(6), "until the log since the switch is copied")
		reportCopied(ctx, m, v1alpha1.MoveBack, v1alpha1.MoveRollingBack, "done")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(second(ctx)).To(BeEmpty())
		expectReady(ctx, s)
		Expect(reload(ctx, s).Spec.Storage).To(Equal(before))
		Expect(connection(ctx)).To(ContainSubstring("@paddock-postgres." + s.Namespace + ".svc:5432/paddock"))
		Expect(versions(databaseOf(ctx, s.Namespace))).To(Equal(first), "nothing was changed")

		By("confirming it")
		m = begin("confirmed")
		finish(m, v1alpha1.MoveForward)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		Expect(versions(databaseOf(ctx, s.Namespace))).To(Equal(first), "kept until the move is confirmed")
		reportCopied(ctx, m, v1alpha1.MoveForward, v1alpha1.MoveSwitched, "done")
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		Expect(second(ctx)).To(HaveLen(6))
		expectReady(ctx, s)

		By("repairing what drifts")
		update(ctx, s.Namespace, provision.SecondName, func(set *appsv1.StatefulSet) { set.Spec.Replicas = ptr.To(int32(0)) })
		Eventually(func() *int32 {
			return get[appsv1.StatefulSet](ctx, s.Namespace, provision.SecondName).Spec.Replicas
		}).WithContext(ctx).Should(HaveValue(BeEquivalentTo(1)))
		setPodOf(ctx, s.Namespace, provision.SecondName, podReady)
		expectReady(ctx, s)

		By("refusing another name")
		Eventually(func() error {
			named := reload(ctx, s)
			named.Spec.Storage.Postgres.Provisioned.Name = provision.Name
			return admin.Update(ctx, named)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("storage.postgres.provisioned.name is changed by a SiteMove only")))

		By("adopting it, and making no other, when the Site is created again")
		volume := get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.SecondName).UID
		deleteAndWait(ctx, s)
		Expect(second(ctx)).To(HaveLen(6))
		again := newProvisionedSite(s.Namespace, "upgraded", v1alpha1.EngineStatefulSet)
		Expect(admin.Create(ctx, again)).To(Succeed())
		storageOf(ctx, again).Should(Equal(`False ForeignRecords: Namespace "` + s.Namespace + `" has the database paddock-postgres-b. ` +
			"To use its data, set spec.storage.postgres.provisioned.name to paddock-postgres-b. Otherwise delete it."))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		left := &corev1.PersistentVolumeClaim{Spec: get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.SecondName).Spec}
		left.Namespace, left.Name, left.Labels = s.Namespace, provision.Name, map[string]string{v1alpha1.SiteKeyLabel: key} // as of a move during which the Site was deleted
		left.Spec.VolumeName = ""
		Expect(admin.Create(ctx, left)).To(Succeed())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) {
			s.Spec.Storage = *to.DeepCopy()
			s.Spec.Storage.Postgres.Provisioned.Name = provision.SecondName
		})
		storageOf(ctx, again).Should(ContainSubstring("has the database paddock-postgres. To use its data, set"))
		deleteAndWait(ctx, left)
		expectReady(ctx, again)
		Expect(get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.SecondName).UID).To(Equal(volume))
		Expect(reload(ctx, again).Status.SiteKey).To(Equal(key))

		By("using the first name for the next one")
		m = createMove(ctx, again, "next", to)
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		Expect(second(ctx)).To(HaveLen(6))

		By("deleting it with the Site")
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		Eventually(func() []string { return reload(ctx, s).Finalizers }).WithContext(ctx).Should(ContainElement(v1alpha1.SiteFinalizer))
		deleteAndWait(ctx, again)
		Expect(second(ctx)).To(BeEmpty())
	})
})
