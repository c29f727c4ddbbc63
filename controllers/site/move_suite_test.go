package site_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/controllers/site"
	"github.com/paddock-health/paddock/controllers/site/provision"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// No API server runs here: the specs report that the data is copied. hack/test/move has moves with
// API servers.
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

	It("does not begin to a database that a later release changed, and leaves that as it is", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-never")
		expectReady(ctx, s)
		later := startExternal(ctx, s.Namespace, "later")
		conn, err := pgx.Connect(ctx, later)
		Expect(err).NotTo(HaveOccurred())
		_, err = schema.Migrate(ctx, conn)
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.Close(ctx)).To(Succeed())
		executeAt(ctx, later, "UPDATE paddock_schema_version SET version = version + 1; UPDATE requirement SET oldest_server = 1000")
		m := createMove(ctx, s, "newer", externalStorage("later"))
		moveReady(ctx, m).Should(HavePrefix("False NewerSchema: A later release changed the tables"))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase).To(Equal(v1alpha1.MovePending))
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
		expectReady(ctx, s)
		executeAt(ctx, later, "DO $$ BEGIN ASSERT (SELECT oldest_server FROM requirement) = 1000; END $$")
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
	})

	It("excludes another one of the Site from its first effect to its end", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-twice")
		expectReady(ctx, s)
		waiting := createMove(ctx, s, "waiting", provisionedStorage(v1alpha1.EngineStatefulSet))
		moveReady(ctx, waiting).Should(HavePrefix("False Provisioning: "))
		startExternal(ctx, s.Namespace, "target")
		other := createMove(ctx, s, "other", externalStorage("target"))
		moveReady(ctx, other).Should(Equal(`False MoveInProgress: SiteMove "waiting" of the Site has not ended. Set its spec.decision first.`))
		Expect(reload(ctx, s).Status.Move.Name).To(Equal("waiting"))
		expectReady(ctx, s)

		By("which lets the other one begin")
		decideMove(ctx, waiting, v1alpha1.MoveRollBack)
		movePhase(ctx, waiting).Should(Equal(v1alpha1.MoveRolledBack))
		movePhase(ctx, other).Should(Equal(v1alpha1.MoveCopying))
		Eventually(func() string { return ptr.Deref(reload(ctx, s).Status.Move, v1alpha1.SiteMoveReference{}).Name }).WithContext(ctx).Should(Equal("other"))
	})

	It("waits while the Site is paused, before it begins and before it pauses writes", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-paused")
		expectReady(ctx, s)
		startExternal(ctx, s.Namespace, "target")
		pause := func(paused bool) {
			update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) {
				s.Annotations = map[string]string{}
				if paused {
					s.Annotations[v1alpha1.PausedAnnotation] = "true"
				}
			})
		}
		pause(true)
		m := createMove(ctx, s, "patient", externalStorage("target"))
		moveReady(ctx, m).Should(Equal(`False SiteNotReady: Site "oak" is paused. Remove its annotation paddock.health/paused.`))
		pause(false)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		pause(true)
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveDraining))
		moveReady(ctx, m).Should(HavePrefix(`False SiteNotReady: Site "oak" is paused.`))
		pause(false)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
	})

	It("returns to the former storage if the new one does not become ready within a minute", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-nowhere")
		expectReady(ctx, s)
		target := startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "nowhere", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		elsewhere, err := url.Parse(target)
		Expect(err).NotTo(HaveOccurred())
		elsewhere.Path = "/elsewhere"
		update(ctx, s.Namespace, "target", func(secret *corev1.Secret) { secret.Data["uri"] = []byte(elsewhere.String()) })
		copied(ctx, m, v1alpha1.MoveCatchingUp)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitching))
		Eventually(func() v1alpha1.StorageType { return reload(ctx, s).Spec.Storage.Type }).WithContext(ctx).Should(Equal(v1alpha1.StoragePostgres))
		r := &site.MoveReconciler{Reconciler: &site.Reconciler{Client: admin, Live: admin, Now: func() time.Time { return time.Now().Add(61 * time.Second) }, ConnectionsNamespace: connectionsNamespace}}
		Eventually(func() error { // the running controller writes too
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			if err == nil && get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Failure == "" {
				return errors.New("no failure yet")
			}
			return err
		}).WithContext(ctx).Should(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Failure).To(ContainSubstring("did not become ready within the maximum pause of writes"))
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
		expectReady(ctx, s)
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).NotTo(HaveKey(v1alpha1.FencedLabel), "the former storage is writable again")
	})

	It("uses credentials that were changed since it began, and reports a database that it cannot use", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "moved-renewed", v1alpha1.DeletionRetain)
		former := startExternal(ctx, s.Namespace, "former")
		s.Spec.Storage = externalStorage("former")
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		executeAt(ctx, former, "INSERT INTO sites (key, hash_key) VALUES ('"+reload(ctx, s).Status.SiteKey+"', '')")
		startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "renewed", externalStorage("target"))
		switchTo(ctx, m)
		copied(ctx, m, v1alpha1.MoveSwitched)

		By("changing the user of the former database")
		address, err := url.Parse(former)
		Expect(err).NotTo(HaveOccurred())
		address.User = url.User("postgres")
		executeAt(ctx, address.String(), "ALTER ROLE former RENAME TO renewed")
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		moveReady(ctx, m).Should(HavePrefix("False DatabaseUnreachable: The former database: The database cannot be used: the user or password is wrong"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		address.User = url.UserPassword("renewed", "renewed")
		update(ctx, s.Namespace, "former", func(secret *corev1.Secret) { secret.Data["uri"] = []byte(address.String()) })
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
		executeAt(ctx, address.String(), "DO $$ BEGIN ASSERT (SELECT count(*) FROM sites) = 0; END $$")
	})

	It("names a database that it cannot reach while it is copied, and what to do", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-nowhere")
		expectReady(ctx, s)
		target, err := url.Parse(startExternal(ctx, s.Namespace, "target"))
		Expect(err).NotTo(HaveOccurred())
		m := createMove(ctx, s, "nowhere", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		target.User, target.Path = url.User("postgres"), "/postgres"
		executeAt(ctx, target.String(), "ALTER DATABASE target RENAME TO gone")
		moveReady(ctx, m).Should(Equal("False DatabaseUnreachable: The new database: The database cannot be used: the database does not exist (SQLSTATE 3D000). " +
			"The move waits until it can be used. If it no longer exists, create an empty database of the same name and owner at the same host and port."))
		executeAt(ctx, target.String(), "CREATE DATABASE target OWNER target")
		moveReady(ctx, m).Should(HavePrefix("False Moving: The data is being copied."))
		target.Path = "/target"
		executeAt(ctx, target.String(), "DO $$ BEGIN ASSERT (SELECT count(*) FROM sites) = 0; END $$") // the tables are there
	})

	It("keeps the former data if the new database was created again after the switch", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-and-lost")
		expectReady(ctx, s)
		key := reload(ctx, s).Status.SiteKey
		createRecord(ctx, s.Namespace, key, "patient.1")
		target := startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "lost", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		executeAt(ctx, target, "INSERT INTO sites (key, hash_key) VALUES ('"+key+"', 'first')")
		switchTo(ctx, m)
		copied(ctx, m, v1alpha1.MoveSwitched)
		Eventually(func() string { return get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.DataID }).WithContext(ctx).ShouldNot(BeEmpty())

		executeAt(ctx, target, "UPDATE sites SET hash_key = 'second'") // as of a database that was created again
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		moveReady(ctx, m).Should(HavePrefix("False ForeignRecords: The new database does not have the data that was moved to it"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		Expect(countRecords(ctx, s.Namespace, key)).To(Equal(6))

		By("continuing when it is restored")
		executeAt(ctx, target, "UPDATE sites SET hash_key = 'first'")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
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

	It("says that its connection to a database is missing", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "moved-blind", v1alpha1.DeletionRetain)
		startExternal(ctx, s.Namespace, "former")
		startExternal(ctx, s.Namespace, "target")
		s.Spec.Storage = externalStorage("former")
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		m := createMove(ctx, s, "blind", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		connection := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.MoveFromName(s.Namespace))
		Expect(admin.Delete(ctx, connection)).To(Succeed())
		missing := Equal("False SecretNotFound: The former database: Secret " + connection.Name + " in namespace " + connectionsNamespace + ", which has its connection, is missing. Restore the Secret.")
		moveReady(ctx, m).Should(missing)
		decideMove(ctx, m, v1alpha1.MoveRollBack) // the controller's cache no longer has the Secret
		moveReady(ctx, m).Should(missing)
		connection.ResourceVersion, connection.UID = "", ""
		Expect(admin.Create(ctx, connection)).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
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

	It("waits from when a phase is in effect, though the leader that wrote the phase died before", func(ctx SpecContext) {
		stop := startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-inherited")
		expectReady(ctx, s)
		target := startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "inherited", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		executeAt(ctx, target, "INSERT INTO sites (key, hash_key) VALUES ('"+reload(ctx, s).Status.SiteKey+"', '')")
		stop()
		// inherit writes a phase as a leader that died a minute ago, and returns a successor that reconciles once.
		inherit := func(phase v1alpha1.MovePhase) func(later time.Duration) v1alpha1.MovePhase {
			GinkgoHelper()
			died := get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name)
			died.Status.Phase, died.Status.PhaseTime = phase, ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Minute)))
			Expect(admin.Status().Update(ctx, died)).To(Succeed())
			var clock time.Duration
			r := &site.MoveReconciler{Reconciler: &site.Reconciler{
				Client: admin, Live: admin, Now: func() time.Time { return time.Now().Add(clock) },
				ConnectionsNamespace: connectionsNamespace, Dial: dial, DatabaseTimeout: databaseTimeout,
			}}
			return func(later time.Duration) v1alpha1.MovePhase {
				GinkgoHelper()
				clock = later
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
				Expect(err).NotTo(HaveOccurred())
				return get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase
			}
		}
		after := inherit(v1alpha1.MoveDraining)
		Expect(after(0)).To(Equal(v1alpha1.MoveDraining), "API servers may still deliver")
		Expect(after(1100 * time.Millisecond)).To(Equal(v1alpha1.MovePausing))
		after = inherit(v1alpha1.MovePausing)
		Expect(after(0)).To(Equal(v1alpha1.MovePausing), "kube-apiserver may still accept writes")
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).To(HaveKey(v1alpha1.FencedLabel))
		Expect(after(1100 * time.Millisecond)).To(Equal(v1alpha1.MoveCatchingUp))
		after = inherit(v1alpha1.MoveRollingBack)
		Expect(after(0)).To(Equal(v1alpha1.MoveRollingBack), "an API server may still copy")
		executeAt(ctx, target, "DO $$ BEGIN ASSERT (SELECT count(*) FROM sites) = 1; END $$")
		startController(ctx)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		executeAt(ctx, target, "DO $$ BEGIN ASSERT (SELECT count(*) FROM sites) = 0; END $$")
	})

	It("is not set back by a controller that is no longer the leader", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-once")
		expectReady(ctx, s)
		startExternal(ctx, s.Namespace, "target")
		m := createMove(ctx, s, "led", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		moveOfSite := func() v1alpha1.MovePhase {
			return ptr.Deref(reload(ctx, s).Status.Move, v1alpha1.SiteMoveReference{}).Phase
		}
		Eventually(moveOfSite).WithContext(ctx).Should(Equal(v1alpha1.MoveCopying))
		before := frozen{admin, get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name), reload(ctx, s)}
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		Eventually(moveOfSite).WithContext(ctx).Should(Equal(v1alpha1.MoveCatchingUp))

		reconcileAs := func(seen frozen) {
			former := &site.MoveReconciler{Reconciler: &site.Reconciler{Client: admin, Live: seen, Now: time.Now}}
			_, err := former.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			Expect(err).NotTo(HaveOccurred())
			Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase).To(Equal(v1alpha1.MoveCatchingUp))
			Expect(moveOfSite()).To(Equal(v1alpha1.MoveCatchingUp))
		}
		By("writing the next phase")
		before.move.Status.Copy = &v1alpha1.MoveCopy{Direction: v1alpha1.MoveForward, Phase: v1alpha1.MoveCopying, Done: true}
		reconcileAs(before)
		By("writing the phase to the Site")
		before.site.Status.Move.Phase = v1alpha1.MovePending
		reconcileAs(before)
	})

	It("waits for attempts of deliveries, and gives up a pause of writes after a minute", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-late")
		expectReady(ctx, s)
		startExternal(ctx, s.Namespace, "target")
		const timeout = 20 // seconds; no process delivers here
		hook := &v1alpha1.Webhook{Spec: v1alpha1.WebhookSpec{EventType: "user.created", URL: "https://receiver.example.org/", Active: ptr.To(true), TimeoutSeconds: timeout}}
		hook.Namespace, hook.Name = s.Namespace, "slow"
		Expect(admin.Create(ctx, hook)).To(Succeed())
		m := createMove(ctx, s, "paused", externalStorage("target"))
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveDraining))
		var clock time.Time
		r := &site.MoveReconciler{Reconciler: &site.Reconciler{Client: admin, Live: admin, Now: func() time.Time { return clock }, ConnectionsNamespace: connectionsNamespace}}
		// at reconciles the move at a time, and returns the phase.
		at := func(now time.Time) v1alpha1.MovePhase {
			GinkgoHelper()
			clock = now
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			Expect(err).NotTo(HaveOccurred())
			return get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase
		}
		begin := time.Now()
		Expect(at(begin)).To(Equal(v1alpha1.MoveDraining))
		Expect(at(begin.Add((timeout-2)*time.Second))).To(Equal(v1alpha1.MoveDraining), "an attempt may still run")
		deleteAndWait(ctx, hook) // instead of the rest of the wait
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))

		By("copying again, with writes, if it is not known what has changed")
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).To(HaveKey(v1alpha1.FencedLabel))
		reportCopied(ctx, m, v1alpha1.MoveForward, v1alpha1.MoveCatchingUp, "changesLost")
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).NotTo(HaveKey(v1alpha1.FencedLabel))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.ResumedTime).NotTo(BeNil())
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Pauses).To(Equal(int32(2)))

		By("giving up")
		paused := get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.PausedTime.Time
		Expect(at(paused.Add(50 * time.Second))).To(Equal(v1alpha1.MoveCatchingUp))
		Eventually(func() v1alpha1.MovePhase { // the running controller writes too
			return at(paused.Add(61 * time.Second))
		}).WithContext(ctx).Should(BeElementOf(v1alpha1.MoveRollingBack, v1alpha1.MoveRolledBack))
		late := get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name)
		before := client.MergeFrom(late.DeepCopy())
		late.Status.PhaseTime = ptr.To(metav1.NowMicro()) // the clock of the running controller is not ahead
		Expect(admin.Status().Patch(ctx, late, before)).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		Expect(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Failure).To(ContainSubstring("maximum pause of writes"))
		Expect(get[corev1.Namespace](ctx, "", s.Namespace).Labels).NotTo(HaveKey(v1alpha1.FencedLabel), "the former storage is writable again")
		expectReady(ctx, s)
		Expect(reload(ctx, s).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
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

// frozen reads a SiteMove and its Site as they were.
type frozen struct {
	client.Reader
	move *v1alpha1.SiteMove
	site *v1alpha1.Site
}

func (f frozen) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	switch object := into.(type) {
	case *v1alpha1.SiteMove:
		f.move.DeepCopyInto(object)
		return nil
	case *v1alpha1.Site:
		f.site.DeepCopyInto(object)
		return nil
	}
	return f.Reader.Get(ctx, key, into, opts...)
}

func provisionedStorage(engine v1alpha1.PostgresEngine) v1alpha1.Storage {
	return newProvisionedSite("", "", engine).Spec.Storage
}

func externalStorage(secret string) v1alpha1.Storage {
	return v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
		External: &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: secret}},
	}}
}

// startExternal starts a server and creates the Secret of a database of it. It returns the URL of the
// database.
func startExternal(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-external")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	uri, err := server.CreateDatabase(ctx, name, name)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{Type: v1alpha1.SecretTypeDSN, StringData: map[string]string{"uri": uri}}
	secret.Namespace, secret.Name = namespace, name
	Expect(admin.Create(ctx, secret)).To(Succeed())
	return uri
}

func executeAt(ctx context.Context, url, sql string) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, url)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	Expect(err).NotTo(HaveOccurred())
}

func createMove(ctx context.Context, s *v1alpha1.Site, name string, to v1alpha1.Storage) *v1alpha1.SiteMove {
	GinkgoHelper()
	m := &v1alpha1.SiteMove{Spec: v1alpha1.SiteMoveSpec{SiteName: s.Name, To: to}}
	m.Namespace, m.Name = s.Namespace, name
	Expect(admin.Create(ctx, m)).To(Succeed())
	return m
}

func decideMove(ctx context.Context, m *v1alpha1.SiteMove, decision v1alpha1.MoveDecision) {
	GinkgoHelper()
	update(ctx, m.Namespace, m.Name, func(m *v1alpha1.SiteMove) { m.Spec.Decision = decision })
}

func movePhase(ctx context.Context, m *v1alpha1.SiteMove) AsyncAssertion {
	return Eventually(func() v1alpha1.MovePhase { return get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Phase }).WithContext(ctx)
}

// moveReady is the condition Ready of a move with its message.
func moveReady(ctx context.Context, m *v1alpha1.SiteMove) AsyncAssertion {
	return Eventually(func() string {
		c := ptr.Deref(meta.FindStatusCondition(get[v1alpha1.SiteMove](ctx, m.Namespace, m.Name).Status.Conditions, v1alpha1.ConditionReady), metav1.Condition{})
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}).WithContext(ctx)
}

// switchTo lets a move copy and switch.
func switchTo(ctx context.Context, m *v1alpha1.SiteMove) {
	GinkgoHelper()
	movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
	copied(ctx, m, v1alpha1.MoveCopying)
	movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
	copied(ctx, m, v1alpha1.MoveCatchingUp)
	movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
}

// registerSite adds the row of the Site to the new database of a move, as an API server does that copies to it.
func registerSite(ctx context.Context, m *v1alpha1.SiteMove) {
	GinkgoHelper()
	secret := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.MoveToName(m.Namespace))
	connection, err := dsn.Parse(secret.Data, v1alpha1.DSNKey)
	Expect(err).NotTo(HaveOccurred())
	config, err := pgx.ParseConfig(connection.URI)
	Expect(err).NotTo(HaveOccurred())
	Expect(connection.Apply(config, dial)).To(Succeed())
	config.LookupFunc = lookup
	conn, err := pgx.ConnectConfig(ctx, config)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "INSERT INTO sites (key, hash_key) VALUES ($1, $2) ON CONFLICT DO NOTHING", secret.Labels[v1alpha1.SiteKeyLabel], []byte(uuid.NewString()))
	Expect(err).NotTo(HaveOccurred())
}

// copied reports that the work of a phase is done, as the API servers do.
func copied(ctx context.Context, m *v1alpha1.SiteMove, phase v1alpha1.MovePhase) {
	GinkgoHelper()
	reportCopied(ctx, m, v1alpha1.MoveForward, phase, "done")
}

// reportCopied reports a result of the API server that copies: done or changesLost.
func reportCopied(ctx context.Context, m *v1alpha1.SiteMove, direction v1alpha1.MoveDirection, phase v1alpha1.MovePhase, result string) {
	GinkgoHelper()
	if direction == v1alpha1.MoveForward && phase == v1alpha1.MoveCopying {
		registerSite(ctx, m)
	}
	report := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name},
		"status":   map[string]any{"copy": map[string]any{"direction": string(direction), "phase": string(phase), result: true}},
	}}
	report.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SiteMove"))
	Expect(apiServer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(report), client.FieldOwner("paddock-apiserver"), client.ForceOwnership)).To(Succeed())
}
