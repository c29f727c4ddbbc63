package site_test

import (
	"net/url"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// Databases of a move that cannot be used, or no longer have the data.
var _ = Describe("A move", func() {
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
})
