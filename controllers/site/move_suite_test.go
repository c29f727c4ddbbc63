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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/site"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// No API server runs here: the specs report that the data is copied. hack/test/move has moves with
// API servers.
var _ = Describe("A move", func() {
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

	It("says what to do about a database that there is not, of the SiteMove and not of the Site", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-where")
		expectReady(ctx, s)
		unknown := createMove(ctx, s, "unknown", externalStorage("absent"))
		moveReady(ctx, unknown).Should(Equal(`False SecretNotFound: There is no Secret "absent" of type paddock.health/dsn in namespace "` + s.Namespace +
			`". Create it, or delete the SiteMove and create another one with another spec.to.postgres.external.secretRef.`))
		decideMove(ctx, unknown, v1alpha1.MoveRollBack)
		movePhase(ctx, unknown).Should(Equal(v1alpha1.MoveRolledBack))
		classless := createMove(ctx, s, "classless", v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{}}})
		moveReady(ctx, classless).Should(Equal("False NoCapacity: storage.postgres.pool needs a SiteClass with a pool. Set spec.className of the Site to the name of such a SiteClass."))
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
