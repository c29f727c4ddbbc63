package site_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

var _ = Describe("Postgres storage", Ordered, func() {
	var server *localpostgres.Server
	var authority string

	BeforeAll(func(ctx SpecContext) {
		dir, err := os.MkdirTemp("", "paddock-controller-postgres")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		server, err = localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Secure: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		pem, err := os.ReadFile(server.CAFile())
		Expect(err).NotTo(HaveOccurred())
		authority = string(pem)
	})

	BeforeEach(func(ctx SpecContext) { startController(ctx) })

	// query asks a database of the server for one value.
	query := func(ctx context.Context, database, sql string, args ...any) (value int) {
		GinkgoHelper()
		conn, err := pgx.Connect(ctx, server.URL(database))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close(ctx) }()
		Expect(conn.QueryRow(ctx, sql, args...).Scan(&value)).To(Succeed())
		return value
	}
	execute := func(ctx context.Context, database, sql string) {
		GinkgoHelper()
		conn, err := pgx.Connect(ctx, server.URL(database))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, sql)
		Expect(err).NotTo(HaveOccurred())
	}
	// newDatabase makes a database with an owner of the same name.
	newDatabase := func(ctx context.Context, name, password string) {
		GinkgoHelper()
		execute(ctx, "postgres", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password))
		execute(ctx, "postgres", fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name))
	}
	uri := func(user, password, host, options string) string {
		address, err := url.Parse(server.URL(user))
		Expect(err).NotTo(HaveOccurred())
		address.User, address.RawQuery = url.UserPassword(user, password), options
		address.Host = host + ":" + address.Port()
		return address.String()
	}
	newPostgresSite := func(namespace, siteID string, policy v1alpha1.DeletionPolicy) *v1alpha1.Site {
		s := newSite(namespace, "oak", siteID, policy)
		s.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
			External: &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: "db"}},
		}}
		return s
	}
	secretOf := func(namespace string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, Type: v1alpha1.SecretTypeDSN, StringData: data,
		}
	}
	setSecret := func(ctx context.Context, namespace string, data map[string]string) {
		GinkgoHelper()
		update(ctx, namespace, "db", func(s *corev1.Secret) { s.StringData = data })
	}
	// createSiteIn creates a Site in a database, and awaits that it is ready.
	createSiteIn := func(ctx context.Context, siteID, uri string, policy v1alpha1.DeletionPolicy) *v1alpha1.Site {
		GinkgoHelper()
		s := newPostgresSite(newNamespace(ctx), siteID, policy)
		Expect(admin.Create(ctx, secretOf(s.Namespace, map[string]string{"uri": uri}))).To(Succeed())
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		return s
	}
	published := func(namespace string) client.ObjectKey {
		return client.ObjectKey{Namespace: connectionsNamespace, Name: v1alpha1.ConnectionName(namespace)}
	}

	It("says what is missing, then migrates and hands the connection to the API servers", func(ctx SpecContext) {
		newDatabase(ctx, "oak", "first-secret")
		s := newPostgresSite(newNamespace(ctx), "pg-oak", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix(`False SecretNotFound: There is no Secret "db" of type paddock.health/dsn`))
		Expect(condition(s, v1alpha1.ConditionReady)(ctx)).To(Equal("False SecretNotFound"))
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True SecretNotFound"))

		By("not reading Secrets of other types")
		other := secretOf(s.Namespace, map[string]string{"uri": uri("oak", "first-secret", "127.0.0.1", "")})
		other.Type = corev1.SecretTypeOpaque
		Expect(admin.Create(ctx, other)).To(Succeed())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak" })
		Eventually(func(ctx context.Context) int64 { return reload(ctx, s).Status.ObservedGeneration }).WithContext(ctx).Should(Equal(int64(2)))
		storageOf(ctx, s).Should(HavePrefix("False SecretNotFound"))
		deleteAndWait(ctx, other)

		Expect(admin.Create(ctx, secretOf(s.Namespace, map[string]string{"dsn": "first-secret"}))).To(Succeed())
		storageOf(ctx, s).Should(Equal(`False InvalidSecret: Secret "db" cannot be used: uri is not in the Secret`))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("oak", "first-secret", "127.0.0.1", "sslrootcert=/etc/passwd")})
		storageOf(ctx, s).Should(Equal(`False InvalidSecret: Secret "db" cannot be used: uri: parameters may contain only sslmode; remove the other parameters`))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("oak", "first-secret", "169.254.169.254", "")})
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable: The database cannot be used: its address is not public"))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("oak", "first-secret", "there-is-no-such-host.invalid", "")})
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable: The database cannot be used: its host name cannot be resolved"))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("oak", "wrong-secret", "127.0.0.1", "")})
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable: The database cannot be used: the user or password is wrong"))
		Expect(condition(s, v1alpha1.ConditionReconciling)(ctx)).To(Equal("True DatabaseUnreachable"))
		Expect(condition(s, v1alpha1.ConditionSchemaReady)(ctx)).To(Equal("Unknown NoDatabase"))
		Expect(admin.Get(ctx, published(s.Namespace), &corev1.Secret{})).To(MatchError(apierrors.IsNotFound, "a not-found error"))

		good := map[string]string{"uri": uri("oak", "first-secret", "127.0.0.1", ""), "ca.crt": authority}
		setSecret(ctx, s.Namespace, good)
		expectReady(ctx, s)
		Expect(condition(s, v1alpha1.ConditionSchemaReady)(ctx)).To(Equal("True Migrated"))
		Expect(condition(s, v1alpha1.ConditionStorageReady)(ctx)).To(Equal("True PostgresStorage"))
		Expect(query(ctx, "oak", "SELECT count(*) FROM res")).To(BeZero())
		claim := get[v1alpha1.SiteClaim](ctx, "", "pg-oak")
		Expect(reload(ctx, s).Status.SiteKey).To(Equal(claim.Spec.SiteKey))
		handed := get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name)
		Expect(handed.Type).To(BeEquivalentTo(v1alpha1.SecretTypeDSN))
		Expect(handed.Labels).To(HaveKeyWithValue(v1alpha1.SiteKeyLabel, claim.Spec.SiteKey))
		Expect(string(handed.Data["uri"])).To(Equal(uri("oak", "first-secret", "127.0.0.1", "sslmode=verify-full")))
		Expect(string(handed.Data["ca.crt"])).To(Equal(authority))

		By("never telling a secret")
		var text string
		Eventually(func(g Gomega, ctx context.Context) {
			text = fmt.Sprint(reload(ctx, s).Status)
			events := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, events, client.InNamespace(s.Namespace))).To(Succeed())
			for _, event := range events.Items {
				text += event.Note
			}
			g.Expect(text).To(ContainSubstring("The database cannot be used"))
		}).WithContext(ctx).Should(Succeed())
		for _, secret := range []string{"first-secret", "wrong-secret", "127.0.0.1", "no-such-host"} {
			Expect(text).NotTo(ContainSubstring(secret))
		}

		By("handing over what was rotated, once it works")
		execute(ctx, "postgres", "ALTER ROLE oak PASSWORD 'second-secret'")
		good["uri"] = uri("oak", "second-secret", "127.0.0.1", "sslmode=verify-ca")
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("oak", "mistyped", "127.0.0.1", "")})
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable"))
		Expect(condition(s, v1alpha1.ConditionSchemaReady)(ctx)).To(Equal("True Migrated"), "what was found stays")
		Expect(get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name).Data).To(Equal(handed.Data))
		setSecret(ctx, s.Namespace, good)
		expectReady(ctx, s)
		Eventually(func(ctx context.Context) string {
			return string(get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name).Data["uri"])
		}).WithContext(ctx).Should(Equal(good["uri"]))

		By("repairing what was handed over")
		update(ctx, connectionsNamespace, published(s.Namespace).Name, func(s *corev1.Secret) { s.Data = nil })
		Eventually(func(ctx context.Context) string {
			return string(get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name).Data["uri"])
		}).WithContext(ctx).Should(Equal(good["uri"]))

		By("taking it back with the Site, and keeping the rows for the next of that name")
		execute(ctx, "oak", fmt.Sprintf("INSERT INTO sites (key, hash_key) VALUES ('%s', '')", claim.Spec.SiteKey))
		deleteAndWait(ctx, s)
		expectGone(ctx, handed)
		Expect(query(ctx, "oak", "SELECT count(*) FROM sites WHERE key = $1", claim.Spec.SiteKey)).To(Equal(1))
		again := newPostgresSite(s.Namespace, "pg-oak", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(get[v1alpha1.SiteClaim](ctx, "", "pg-oak").Spec.SiteKey).To(Equal(claim.Spec.SiteKey))
	})

	It("verifies the server as the connection string asks", func(ctx SpecContext) {
		newDatabase(ctx, "tls", "tls-secret")
		s := newPostgresSite(newNamespace(ctx), "pg-tls", v1alpha1.DeletionRetain)
		stranger := cluster.Config().CAData
		Expect(stranger).NotTo(BeEmpty())
		Expect(admin.Create(ctx, secretOf(s.Namespace, map[string]string{
			"uri": uri("tls", "tls-secret", "127.0.0.1", ""), "ca.crt": string(stranger),
		}))).To(Succeed())
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable: The database cannot be used: its TLS certificate is not trusted or not valid for the host: check ca.crt of the Secret, and sslmode in"))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("tls", "tls-secret", "localhost", "sslmode=verify-full"), "ca.crt": authority})
		expectReady(ctx, s)
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("tls", "tls-secret", "127.0.0.1", "sslmode=disable")})
		Eventually(func(ctx context.Context) string {
			return string(get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name).Data["uri"])
		}).WithContext(ctx).Should(HaveSuffix("sslmode=disable"))
		expectReady(ctx, s)
	})

	It("leaves a database alone that a later release changed", func(ctx SpecContext) {
		newDatabase(ctx, "later", "later-secret")
		database := uri("later", "later-secret", "127.0.0.1", "")
		createSiteIn(ctx, "pg-later-a", database, v1alpha1.DeletionRetain)
		execute(ctx, "later", "UPDATE paddock_schema_version SET version = version + 1; UPDATE requirement SET oldest_server = 1000")
		second := newPostgresSite(newNamespace(ctx), "pg-later-b", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, secretOf(second.Namespace, map[string]string{"uri": database}))).To(Succeed())
		Expect(admin.Create(ctx, second)).To(Succeed())
		Eventually(condition(second, v1alpha1.ConditionSchemaReady)).WithContext(ctx).Should(Equal("False NewerSchema"))
		Expect(condition(second, v1alpha1.ConditionReady)(ctx)).To(Equal("False NewerSchema"))
		Expect(query(ctx, "later", "SELECT oldest_server FROM requirement")).To(Equal(1000))
	})

	It("is not delayed by databases that do not respond, and reports them", func(ctx SpecContext) {
		newDatabase(ctx, "held", "held-secret")
		database := uri("held", "held-secret", "127.0.0.1", "")
		first := createSiteIn(ctx, "pg-held-0", database, v1alpha1.DeletionDelete)
		conn, err := pgx.Connect(ctx, server.URL("held"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		lock, err := conn.Begin(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = lock.Exec(ctx, "LOCK TABLE paddock_schema_version, sites")
		Expect(err).NotTo(HaveOccurred())

		By("as many Sites as the controller reconciles concurrently, and another one")
		var held []*v1alpha1.Site
		for i := range 16 {
			s := newPostgresSite(newNamespace(ctx), fmt.Sprintf("pg-held-%d", i+1), v1alpha1.DeletionDelete)
			Expect(admin.Create(ctx, secretOf(s.Namespace, map[string]string{"uri": database}))).To(Succeed())
			Expect(admin.Create(ctx, s)).To(Succeed())
			held = append(held, s)
		}
		other := newSite(newNamespace(ctx), "oak", "not-held", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, other)).To(Succeed())
		expectReady(ctx, other)
		Eventually(condition(held[0], v1alpha1.ConditionSchemaReady)).WithContext(ctx).Should(Equal("False MigrationFailed"))
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(func(ctx context.Context) string {
			return ptr.Deref(meta.FindStatusCondition(reload(ctx, first).Status.Conditions, v1alpha1.ConditionReconciling), metav1.Condition{}).Message
		}).WithContext(ctx).WithTimeout(time.Minute).Should(ContainSubstring("did not delete all rows within 10s"))

		By("ending the lock")
		Expect(lock.Rollback(ctx)).To(Succeed())
		expectGone(ctx, first)
		for _, s := range held {
			expectReady(ctx, s)
		}
	})

	It("is not used by a Site that is created again, while its records are in another storage", func(ctx SpecContext) {
		newDatabase(ctx, "again", "again-secret")
		namespace := newNamespace(ctx)
		first := createSite(ctx, namespace, "oak", "pg-again")
		expectReady(ctx, first)
		key := reload(ctx, first).Status.SiteKey
		createRecord(ctx, namespace, key, "patient.1")
		deleteAndWait(ctx, first)

		By("in the cluster")
		Expect(admin.Create(ctx, secretOf(namespace, map[string]string{"uri": uri("again", "again-secret", "127.0.0.1", "")}))).To(Succeed())
		elsewhere := newPostgresSite(namespace, "pg-again", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, elsewhere)).To(Succeed())
		storageOf(ctx, elsewhere).Should(Equal(`False ForeignRecords: Namespace "` + namespace + `" has the retained records of SiteClaim "pg-again". ` +
			"Delete the Site, create it with storage.type Cluster, and then move it by a SiteMove."))
		Expect(reload(ctx, elsewhere).Status.SiteKey).To(BeEmpty())

		By("keeping those records when it is deleted")
		Eventually(func() []string { return reload(ctx, elsewhere).Finalizers }).WithContext(ctx).Should(ContainElement(v1alpha1.SiteFinalizer))
		Expect(admin.Delete(ctx, elsewhere)).To(Succeed())
		Eventually(func(ctx context.Context) string {
			return ptr.Deref(meta.FindStatusCondition(reload(ctx, elsewhere).Status.Conditions, v1alpha1.ConditionReconciling), metav1.Condition{}).Message
		}).WithContext(ctx).Should(HavePrefix("Not all of the site's records have been deleted. To keep those that remain, set deletionPolicy to Retain. Cause: Namespace"))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "pg-again").Spec.SiteKey).To(Equal(key))
		update(ctx, namespace, "oak", func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
		expectGone(ctx, elsewhere)
		Expect(countRecords(ctx, namespace, key)).To(Equal(6))

		By("in the database of another Secret")
		Expect(apiServer.Delete(ctx, newRecord(namespace, key, "patient.1"))).To(Succeed())
		stored := newPostgresSite(namespace, "pg-again", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, stored)).To(Succeed())
		expectReady(ctx, stored)
		Expect(get[v1alpha1.SiteClaim](ctx, "", "pg-again").Spec.External).To(HaveValue(Equal(v1alpha1.DSNReference{Name: "db", Key: "uri"})))
		deleteAndWait(ctx, stored)
		other := newPostgresSite(namespace, "pg-again", v1alpha1.DeletionRetain)
		other.Spec.Storage.Postgres.External.SecretRef.Name = "other"
		for _, s := range []*v1alpha1.Site{newSite(namespace, "oak", "pg-again", v1alpha1.DeletionRetain), other} {
			Expect(admin.Create(ctx, s)).To(Succeed())
			storageOf(ctx, s).Should(HavePrefix(`False ForeignRecords: The retained records of SiteClaim "pg-again" are in the database of Secret "db", key "uri".`))
			deleteAndWait(ctx, s)
		}
		again := newPostgresSite(namespace, "pg-again", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		deleteAndWait(ctx, again)

		By("in a provisioned database")
		volume := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		volume.Namespace, volume.Name = namespace, provision.SecondName
		volume.Labels = map[string]string{v1alpha1.SiteKeyLabel: key}
		Expect(admin.Create(ctx, volume)).To(Succeed())
		known := newPostgresSite(namespace, "pg-again", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, known)).To(Succeed())
		expectReady(ctx, known) // such as during a SiteMove that has created the volume, and has not begun to copy
		deleteAndWait(ctx, known)
		// From then on, the controller does not write the Secret to the SiteClaim again.
		expectGone(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: connectionsNamespace, Name: published(namespace).Name}})
		update(ctx, "", "pg-again", func(claim *v1alpha1.SiteClaim) { claim.Spec.External = nil })
		createRecord(ctx, namespace, key, "patient.2")
		known = createSite(ctx, namespace, "oak", "pg-again")
		expectReady(ctx, known)
		deleteAndWait(ctx, known)
		Expect(apiServer.Delete(ctx, newRecord(namespace, key, "patient.2"))).To(Succeed())
		inCluster := createSite(ctx, namespace, "oak", "pg-again")
		storageOf(ctx, inCluster).Should(HavePrefix(`False ForeignRecords: Namespace "` + namespace + `" has the database paddock-postgres-b of engine StatefulSet with the retained records`))
		deleteAndWait(ctx, volume)
		touch(ctx, inCluster)
		expectReady(ctx, inCluster)
	})

	It("removes the rows with deletionPolicy Delete, and waits for a database that is away", func(ctx SpecContext) {
		newDatabase(ctx, "gone", "gone-secret")
		s := createSiteIn(ctx, "pg-gone", uri("gone", "gone-secret", "127.0.0.1", ""), v1alpha1.DeletionDelete)
		claim := get[v1alpha1.SiteClaim](ctx, "", "pg-gone")
		for _, key := range []string{claim.Spec.SiteKey, "another"} {
			execute(ctx, "gone", fmt.Sprintf("INSERT INTO sites (key, hash_key) VALUES ('%s', '')", key))
			execute(ctx, "gone", fmt.Sprintf(`INSERT INTO ix_code SELECT (SELECT site FROM sites WHERE key = '%s'), 1, 1, 1, n FROM generate_series(1, 12000) n`, key))
		}
		execute(ctx, "postgres", "ALTER ROLE gone NOLOGIN")
		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(func(ctx context.Context) string {
			c := meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionReconciling)
			return c.Message
		}).WithContext(ctx).Should(ContainSubstring("Not all of the site's records have been deleted. To keep those that remain, set deletionPolicy to Retain. Cause: The database cannot be used"))
		Expect(query(ctx, "gone", "SELECT count(*) FROM sites")).To(Equal(2))

		By("using what API servers were handed when the tenant's Secret is gone")
		execute(ctx, "postgres", "ALTER ROLE gone LOGIN")
		deleteAndWait(ctx, secretOf(s.Namespace, nil))
		expectGone(ctx, s)
		expectGone(ctx, claim)
		Expect(query(ctx, "gone", "SELECT count(*) FROM sites")).To(Equal(1))
		Expect(query(ctx, "gone", "SELECT count(*) FROM ix_code")).To(Equal(12000))
		key := published(s.Namespace)
		expectGone(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	})

	It("removes the rows with a password that was renewed after the Site was deleted, and in no other database", func(ctx SpecContext) {
		newDatabase(ctx, "renewed", "former-secret")
		s := createSiteIn(ctx, "pg-renewed", uri("renewed", "former-secret", "127.0.0.1", ""), v1alpha1.DeletionDelete)
		execute(ctx, "renewed", "INSERT INTO sites (key, hash_key) VALUES ('"+reload(ctx, s).Status.SiteKey+"', '')")
		execute(ctx, "postgres", "ALTER ROLE renewed PASSWORD 'next-secret'")
		Expect(admin.Delete(ctx, s)).To(Succeed())
		reconciling := func(ctx context.Context) string {
			return ptr.Deref(meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionReconciling), metav1.Condition{}).Message
		}
		Eventually(reconciling).WithContext(ctx).Should(ContainSubstring("password is wrong"))
		execute(ctx, "postgres", "CREATE DATABASE elsewhere OWNER renewed")
		setSecret(ctx, s.Namespace, map[string]string{"uri": strings.Replace(uri("renewed", "next-secret", "127.0.0.1", ""), "/renewed", "/elsewhere", 1)})
		Consistently(reconciling).WithContext(ctx).WithTimeout(2 * time.Second).Should(ContainSubstring("password is wrong"))
		setSecret(ctx, s.Namespace, map[string]string{"uri": uri("renewed", "next-secret", "127.0.0.1", "")})
		expectGone(ctx, s)
		Expect(query(ctx, "renewed", "SELECT count(*) FROM sites")).To(BeZero())
	})

	DescribeTable("removes the rows of an earlier Site of that name, whose database cannot be used", func(ctx SpecContext, name string, noted bool) {
		newDatabase(ctx, name, "adopted-secret")
		first := createSiteIn(ctx, "pg-"+name, uri(name, "adopted-secret", "127.0.0.1", ""), v1alpha1.DeletionRetain)
		claim := get[v1alpha1.SiteClaim](ctx, "", "pg-"+name)
		execute(ctx, name, fmt.Sprintf("INSERT INTO sites (key, hash_key) VALUES ('%s', '')", claim.Spec.SiteKey))
		deleteAndWait(ctx, first)
		execute(ctx, "postgres", "ALTER ROLE "+name+" NOLOGIN")
		if !noted {
			update(ctx, "", claim.Name, func(claim *v1alpha1.SiteClaim) { claim.Spec.External = nil })
			time.Sleep(time.Second) // creationTimestamp has whole seconds
		}
		s := newPostgresSite(first.Namespace, "pg-"+name, v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable"))
		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(func(ctx context.Context) string {
			return ptr.Deref(meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionReconciling), metav1.Condition{}).Message
		}).WithContext(ctx).Should(ContainSubstring("Not all of the site's records have been deleted. To keep those that remain, set deletionPolicy to Retain. Cause: The database cannot be used"))
		execute(ctx, "postgres", "ALTER ROLE "+name+" LOGIN")
		// Instead of the next attempt, which may just have succeeded.
		Expect(client.IgnoreNotFound(admin.Patch(ctx, s.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"yes"}}}`))))).To(Succeed())
		expectGone(ctx, s)
		expectGone(ctx, claim)
		Expect(query(ctx, name, "SELECT count(*) FROM sites")).To(BeZero())
	},
		Entry("that the SiteClaim names", "adopted", true),
		Entry("that it does not name", "adoptedtoo", false),
	)

	It("removes the rows of the tables that it knows, and none of a later release's", func(ctx SpecContext) {
		newDatabase(ctx, "grown", "grown-secret")
		s := createSiteIn(ctx, "pg-grown", uri("grown", "grown-secret", "127.0.0.1", ""), v1alpha1.DeletionDelete)
		claim := get[v1alpha1.SiteClaim](ctx, "", "pg-grown")
		key := claim.Spec.SiteKey
		execute(ctx, "grown", fmt.Sprintf("INSERT INTO sites (key, hash_key) VALUES ('%s', '')", key))
		execute(ctx, "grown", "INSERT INTO ix_code SELECT site, 1, 1, 1, 1 FROM sites")
		execute(ctx, "grown", `CREATE TABLE later (site int4 NOT NULL, n int8 NOT NULL); ALTER TABLE later OWNER TO grown;
			INSERT INTO later SELECT site, 7 FROM sites;
			UPDATE paddock_schema_version SET version = version + 1; UPDATE requirement SET oldest_server = 1000`)
		deleteAndWait(ctx, s)
		expectGone(ctx, claim)
		for _, table := range []string{"sites", "ix_code"} {
			Expect(query(ctx, "grown", "SELECT count(*) FROM "+table)).To(BeZero(), table)
		}
		Expect(query(ctx, "grown", "SELECT n FROM later")).To(Equal(7))
		Expect(query(ctx, "grown", "SELECT oldest_server FROM requirement")).To(Equal(1000))
	})

	It("writes nothing when nothing changed", func(ctx SpecContext) {
		newDatabase(ctx, "idle", "idle-secret")
		s := newPostgresSite(newNamespace(ctx), "pg-idle", v1alpha1.DeletionRetain)
		Expect(admin.Create(ctx, secretOf(s.Namespace, map[string]string{"uri": uri("idle", "idle-secret", "127.0.0.1", "")}))).To(Succeed())
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		before, handed := reload(ctx, s), get[corev1.Secret](ctx, connectionsNamespace, published(s.Namespace).Name)
		update(ctx, s.Namespace, "db", func(s *corev1.Secret) { s.Labels = map[string]string{"touched": "yes"} })
		witness := createSite(ctx, newNamespace(ctx), "elm", "pg-idle-witness") // reconciled after that
		expectReady(ctx, witness)
		Expect(reload(ctx, s).ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(get[corev1.Secret](ctx, connectionsNamespace, handed.Name).ResourceVersion).To(Equal(handed.ResourceVersion))
		Expect(strings.Contains(fmt.Sprint(before.Status.Conditions), "idle-secret")).To(BeFalse())
	})
})
