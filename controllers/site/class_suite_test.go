package site_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

var _ = Describe("SiteClass", func() {
	newClass := func(ctx context.Context, name string, change func(*v1alpha1.SiteClass)) {
		GinkgoHelper()
		class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(class)
		Expect(admin.Create(ctx, class)).To(Succeed())
	}
	ofClass := func(namespace, siteID, class string) *v1alpha1.Site {
		s := newSite(namespace, "oak", siteID, v1alpha1.DeletionRetain)
		s.Spec.ClassName = &class
		return s
	}

	It("completes Sites by their class", func(ctx SpecContext) {
		startController(ctx)
		s := ofClass(newNamespace(ctx), "class-exposed", "exposed")
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectRefused(ctx, s, v1alpha1.ReasonClassNotFound)
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True ClassNotFound"))

		newClass(ctx, "exposed", func(class *v1alpha1.SiteClass) {
			class.Spec.Exposure = &v1alpha1.Exposure{Ingress: &v1alpha1.IngressExposure{Host: "forbidden.example.net"}}
			class.Spec.Storage = &v1alpha1.ClassStorage{Cluster: &v1alpha1.ClusterStorage{MaxRecords: ptr.To[int32](5)}}
		})
		Eventually(condition(s, v1alpha1.ConditionExposed)).WithContext(ctx).Should(Equal("False HostNotAllowed"))
		now := reload(ctx, s)
		Expect(now.Spec.Storage).To(Equal(v1alpha1.Storage{Type: v1alpha1.StorageCluster, Cluster: &v1alpha1.ClusterStorage{MaxRecords: ptr.To[int32](5)}}))
		Expect(now.Spec.Exposure).To(BeNil(), "only storage is written to the Site")

		By("following changes of the class, but not of its storage")
		update(ctx, "", "exposed", func(class *v1alpha1.SiteClass) {
			class.Spec.Exposure, class.Spec.Storage = nil, nil
		})
		expectReady(ctx, s)
		Expect(condition(s, v1alpha1.ConditionExposed)(ctx)).To(Equal("none"))
		Expect(reload(ctx, s).Spec.Storage.Cluster).NotTo(BeNil())
	})

	It("gives new Sites the default class, and no others", func(ctx SpecContext) {
		stop := startController(ctx)
		before := createSite(ctx, newNamespace(ctx), "elm", "class-before")
		expectReady(ctx, before)
		Expect(reload(ctx, before).Spec.Storage).To(Equal(v1alpha1.Storage{Type: v1alpha1.StorageCluster}))
		stop()
		newClass(ctx, "standard", func(class *v1alpha1.SiteClass) {
			class.Annotations = map[string]string{v1alpha1.DefaultClassAnnotation: "true"}
		})
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "class-default")
		none := ofClass(newNamespace(ctx), "class-none", "")
		Expect(admin.Create(ctx, none)).To(Succeed())
		expectReady(ctx, s)
		expectReady(ctx, none)
		Expect(reload(ctx, s).Spec.ClassName).To(HaveValue(Equal("standard")))
		Expect(reload(ctx, none).Spec.ClassName).To(HaveValue(BeEmpty()))
		Expect(reload(ctx, before).Spec.ClassName).To(BeNil())

		By("refusing another storage type for a Site that has data")
		other := reload(ctx, s)
		other.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{}}}
		Expect(admin.Update(ctx, other)).To(MatchError(apierrors.IsInvalid, "an invalid object"))
	})

	It("leaves a Site that is created again in the cluster, where its records are", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "class-again")
		expectReady(ctx, s)
		createRecord(ctx, s.Namespace, reload(ctx, s).Status.SiteKey, "kept")
		deleteAndWait(ctx, s)
		newClass(ctx, "later", func(class *v1alpha1.SiteClass) {
			pool := v1alpha1.PostgresPool{Databases: []v1alpha1.PoolDatabase{{Name: "later", SecretRef: v1alpha1.DSNReference{Name: "later"}, Capacity: ptr.To[int32](1)}}}
			class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &pool}}
		})
		again := ofClass(s.Namespace, "class-again", "later")
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(reload(ctx, again).Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
	})

	startServer := func(ctx context.Context) *localpostgres.Server {
		GinkgoHelper()
		dir, err := os.MkdirTemp("", "paddock-controller-pool")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		return server
	}
	createDatabase := func(ctx context.Context, server *localpostgres.Server, name string) {
		GinkgoHelper()
		executeAt(ctx, server.URL("postgres"), "CREATE DATABASE "+name)
	}
	createPoolSecret := func(ctx context.Context, server *localpostgres.Server, name string) {
		GinkgoHelper()
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}, Type: v1alpha1.SecretTypeDSN,
			StringData: map[string]string{"uri": server.URL(name)},
		}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { deleteAndWait(ctx, secret) })
	}
	poolDatabase := func(name string, capacity int32) v1alpha1.PoolDatabase {
		return v1alpha1.PoolDatabase{Name: name, SecretRef: v1alpha1.DSNReference{Name: name}, Capacity: &capacity}
	}

	It("connects to a database of a pool for the Sites that wait, and not for those that are served", func(ctx SpecContext) {
		server := startServer(ctx)
		createDatabase(ctx, server, "single")
		newClass(ctx, "crowded", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{
				Pool: &v1alpha1.PostgresPool{Databases: []v1alpha1.PoolDatabase{poolDatabase("single", 1)}},
			}}
		})
		startController(ctx)

		By("waiting for the Secret")
		served := ofClass(newNamespace(ctx), "crowded-1", "crowded")
		served.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		Expect(admin.Create(ctx, served)).To(Succeed())
		Eventually(condition(served, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False SecretNotFound"))
		createPoolSecret(ctx, server, "single")
		Eventually(condition(served, v1alpha1.ConditionReady)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("True Serving"))

		By("counting the Sites that wait for room")
		conn, err := pgx.Connect(ctx, server.URL("postgres"))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close(context.Background()) }()
		sessions := func() (n int) {
			GinkgoHelper()
			Expect(conn.QueryRow(ctx, "SELECT sessions FROM pg_stat_database WHERE datname = 'single'").Scan(&n)).To(Succeed())
			return n
		}
		const quiet = 3 * time.Second // Postgres counts a session within a second of its end
		Eventually(func() int {
			before := sessions()
			time.Sleep(quiet)
			return sessions() - before
		}).WithContext(ctx).Should(BeZero())
		before := sessions()
		waiting := make([]*v1alpha1.Site, 3)
		for i := range waiting {
			waiting[i] = ofClass(newNamespace(ctx), fmt.Sprintf("crowded-%d", i+2), "crowded")
			Expect(admin.Create(ctx, waiting[i])).To(Succeed())
			Eventually(condition(waiting[i], v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False NoCapacity"))
			Eventually(func(ctx context.Context) int32 {
				return get[v1alpha1.SiteClass](ctx, "", "crowded").Status.Sites
			}).WithContext(ctx).Should(BeEquivalentTo(i + 2))
		}
		Consistently(sessions).WithTimeout(quiet).Should(Equal(before), "sessions in the database")

		By("placing one of them when another Site is deleted")
		deleteAndWait(ctx, served)
		Eventually(func(ctx context.Context) int {
			placed := 0
			for _, s := range waiting {
				if reload(ctx, s).Status.Database == "single" {
					placed++
				}
			}
			return placed
		}).WithContext(ctx).Should(Equal(1))
	})

	It("places Sites on the databases of a pool up to their capacity", func(ctx SpecContext) {
		server := startServer(ctx)
		var pool v1alpha1.PostgresPool
		addDatabase := func(name string, capacity int32) {
			createDatabase(ctx, server, name)
			createPoolSecret(ctx, server, name)
			pool.Databases = append(pool.Databases, poolDatabase(name, capacity))
		}
		addDatabase("pool0", 2)
		addDatabase("pool1", 3)
		newClass(ctx, "shared", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &pool}}
		})
		startController(ctx, elected)

		sites := make([]*v1alpha1.Site, 6)
		var created sync.WaitGroup
		for i := range sites {
			sites[i] = ofClass(newNamespace(ctx), fmt.Sprintf("pooled-%d", i), "shared")
			created.Go(func() {
				defer GinkgoRecover()
				Expect(admin.Create(ctx, sites[i])).To(Succeed())
			})
		}
		created.Wait()
		Eventually(func(g Gomega, ctx context.Context) {
			on := map[string]int{}
			for _, s := range sites {
				state, err := condition(s, v1alpha1.ConditionReady)(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				on[state+" "+reload(ctx, s).Status.Database]++
			}
			g.Expect(on).To(Equal(map[string]int{"True Serving pool0": 2, "True Serving pool1": 3, "False NoCapacity ": 1}))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) v1alpha1.SiteClassStatus {
			status := get[v1alpha1.SiteClass](ctx, "", "shared").Status
			status.ObservedGeneration = 0
			return status
		}).WithContext(ctx).Should(Equal(v1alpha1.SiteClassStatus{Sites: 6, Databases: []v1alpha1.PoolDatabaseStatus{{Name: "pool0", Sites: 2}, {Name: "pool1", Sites: 3}}}))

		By("keeping the database with the data, for the next Site of that name")
		var kept *v1alpha1.Site
		for _, s := range sites {
			if reload(ctx, s).Status.Database == "pool0" {
				kept = s
			}
		}
		key := get[v1alpha1.SiteClaim](ctx, "", kept.Spec.SiteID).Spec
		deleteAndWait(ctx, kept)
		again := ofClass(kept.Namespace, kept.Spec.SiteID, "shared")
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(reload(ctx, again).Status.Database).To(Equal("pool0"))
		Expect(get[v1alpha1.SiteClaim](ctx, "", kept.Spec.SiteID).Spec.SiteKey).To(Equal(key.SiteKey))

		By("not giving that Site another storage, where its data is not")
		deleteAndWait(ctx, again)
		elsewhere := ofClass(kept.Namespace, kept.Spec.SiteID, "")
		Expect(admin.Create(ctx, elsewhere)).To(Succeed())
		Eventually(condition(elsewhere, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False ForeignRecords"))
		Expect(get[v1alpha1.SiteClaim](ctx, "", kept.Spec.SiteID).Spec.Placement.Database).To(Equal("pool0"))
		deleteAndWait(ctx, elsewhere)
		again = ofClass(kept.Namespace, kept.Spec.SiteID, "shared")
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(reload(ctx, again).Status.Database).To(Equal("pool0"))

		By("placing the last one when there is room")
		update(ctx, "", "shared", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage.Postgres.Pool.Databases[0].Capacity = ptr.To[int32](3)
		})
		for _, s := range sites {
			expectReady(ctx, s)
		}

		By("moving the Sites of a database that is drained, as far as there is room")
		addDatabase("pool2", 2)
		for _, s := range sites {
			if reload(ctx, s).Status.Database == "pool1" { // a Site without class too
				update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.ClassName = ptr.To("") })
				break
			}
		}
		keys := map[string]string{}
		for _, s := range sites {
			now := reload(ctx, s)
			keys[s.Name+"/"+s.Namespace] = now.Status.SiteKey
			executeAt(ctx, server.URL(now.Status.Database), "INSERT INTO sites (key, hash_key) VALUES ('"+now.Status.SiteKey+"', '')")
		}
		update(ctx, "", "shared", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage.Postgres.Pool.Databases = append(class.Spec.Storage.Postgres.Pool.Databases, pool.Databases[2])
			class.Spec.Storage.Postgres.Pool.Databases[1].Drain = true
		})
		perDatabase := func(ctx context.Context) []v1alpha1.PoolDatabaseStatus {
			copyDrained(ctx, server)
			return get[v1alpha1.SiteClass](ctx, "", "shared").Status.Databases
		}
		Eventually(perDatabase).WithContext(ctx).WithTimeout(time.Minute).Should(Equal([]v1alpha1.PoolDatabaseStatus{
			{Name: "pool0", Sites: 3},
			{Name: "pool1", Sites: 1, Message: "No other database of the pool has room for 1 of the Sites. Add a database, or raise the capacity of one."},
			{Name: "pool2", Sites: 2},
		}))
		update(ctx, "", "shared", func(class *v1alpha1.SiteClass) {
			class.Spec.Storage.Postgres.Pool.Databases[2].Capacity = ptr.To[int32](3)
		})
		Eventually(perDatabase).WithContext(ctx).WithTimeout(time.Minute).Should(Equal([]v1alpha1.PoolDatabaseStatus{{Name: "pool0", Sites: 3}, {Name: "pool1"}, {Name: "pool2", Sites: 3}}))
		for _, s := range sites {
			expectReady(ctx, s)
			claim := get[v1alpha1.SiteClaim](ctx, "", s.Spec.SiteID).Spec
			Expect(claim.SiteKey).To(Equal(keys[s.Name+"/"+s.Namespace]))
			Expect(claim.Reserved).To(BeNil())
			Expect(claim.Placement.Database).To(Equal(reload(ctx, s).Status.Database))
			published := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace))
			Expect(string(published.Data["uri"])).To(ContainSubstring("/" + claim.Placement.Database + "?"))
		}
		Eventually(func(g Gomega) {
			moves := &v1alpha1.SiteMoveList{}
			g.Expect(admin.List(ctx, moves, client.HasLabels{v1alpha1.DrainLabel})).To(Succeed())
			g.Expect(moves.Items).To(BeEmpty(), "ended moves of the drain")
		}).WithContext(ctx).Should(Succeed())
		var left int
		drained, err := pgx.Connect(ctx, server.URL("pool1"))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = drained.Close(context.Background()) }()
		Expect(drained.QueryRow(ctx, "SELECT count(*) FROM sites").Scan(&left)).To(Succeed())
		Expect(left).To(BeZero(), "sites in the drained database")

		By("keeping a class that Sites use")
		class := get[v1alpha1.SiteClass](ctx, "", "shared")
		Expect(admin.Delete(ctx, class)).To(Succeed())
		late := ofClass(newNamespace(ctx), "pooled-late", "shared")
		Expect(admin.Create(ctx, late)).To(Succeed())
		Eventually(condition(late, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False NoCapacity"))
		Expect(get[v1alpha1.SiteClass](ctx, "", "shared").DeletionTimestamp).NotTo(BeNil())
		expectReady(ctx, again)
	})

	It("deletes a Site that adopted a SiteClaim without a placement", func(ctx SpecContext) {
		startController(ctx)
		s := ofClass(newNamespace(ctx), "pooled-never", "")
		s.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{}}}
		again := s.DeepCopy()
		again.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		for _, s := range []*v1alpha1.Site{s, again} {
			Expect(admin.Create(ctx, s)).To(Succeed())
			Eventually(condition(s, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False NoCapacity"))
			time.Sleep(time.Second) // creationTimestamp has whole seconds
			deleteAndWait(ctx, s)
		}
		expectGone(ctx, &v1alpha1.SiteClaim{ObjectMeta: metav1.ObjectMeta{Name: "pooled-never"}})
	})
})

// copyDrained does what the API servers do for the SiteMoves of a drain. At most two are in progress.
func copyDrained(ctx context.Context, server *localpostgres.Server) {
	GinkgoHelper()
	moves := &v1alpha1.SiteMoveList{}
	Expect(admin.List(ctx, moves, client.HasLabels{v1alpha1.DrainLabel})).To(Succeed())
	inProgress := 0
	for i := range moves.Items {
		m := &moves.Items[i]
		phase := m.Status.Phase
		if !phase.Ended() {
			inProgress++
		}
		if phase != v1alpha1.MoveCopying && phase != v1alpha1.MoveCatchingUp && phase != v1alpha1.MoveSwitched || m.Status.Copy != nil && m.Status.Copy.Phase == phase {
			continue
		}
		if phase == v1alpha1.MoveCopying {
			executeAt(ctx, server.URL(m.Status.Placement.Database), "INSERT INTO sites (key, hash_key) VALUES ('"+m.Status.SiteKey+"', '')")
		}
		copied(ctx, m, phase)
	}
	Expect(inProgress).To(BeNumerically("<=", 2))
}
