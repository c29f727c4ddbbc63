package site_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// CloudNativePG's operator does not run here: what it would write, the spec writes.
var _ = Describe("A database by CloudNativePG", Ordered, func() {
	findNamed := func(ctx context.Context, namespace, name string, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		return object, admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	}
	find := func(ctx context.Context, namespace string, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
		return findNamed(ctx, namespace, provision.Name, kind)
	}

	It("is made, kept and deleted", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "replicated", v1alpha1.EngineCloudNativePG)
		s.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		s.Spec.Storage.Postgres.Provisioned.Backup = &v1alpha1.PostgresBackup{Schedule: "0 0 2 * * *"}
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix("False EngineMissing: CloudNativePG is not installed"))
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True EngineMissing"))

		By("noticing that it was installed")
		installCloudNativePG(ctx)
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak" }) // instead of the next look
		storageOf(ctx, s).Should(HavePrefix("False Provisioning"))
		var cluster *unstructured.Unstructured
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			cluster, err = find(ctx, s.Namespace, provision.ClusterKind)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = find(ctx, s.Namespace, provision.ScheduledBackupKind)
			g.Expect(err).NotTo(HaveOccurred())
		}).WithContext(ctx).Should(Succeed())
		Expect(cluster.GetOwnerReferences()).To(BeEmpty())

		By("connecting to the primary once an instance is ready")
		secret := get[corev1.Secret](ctx, s.Namespace, provision.Name)
		settings, _, err := unstructured.NestedStringMap(cluster.Object, "spec", "postgresql", "parameters")
		Expect(err).NotTo(HaveOccurred())
		serve(ctx, secret, settings)
		authority := &corev1.Secret{Data: map[string][]byte{"ca.crt": secret.Data["ca.crt"]}}
		authority.Namespace, authority.Name = s.Namespace, provision.AuthoritySecret(provision.Name)
		cluster.Object["status"] = map[string]any{"phase": "Setting up primary"}
		Expect(admin.Status().Update(ctx, cluster)).To(Succeed())
		storageOf(ctx, s).Should(Equal("False Provisioning: CloudNativePG reports: Setting up primary"))
		Expect(admin.Create(ctx, authority)).To(Succeed())
		cluster.Object["status"] = map[string]any{"phase": "Creating a new replica", "currentPrimary": provision.Name + "-1", "readyInstances": int64(1)}
		Expect(admin.Status().Update(ctx, cluster)).To(Succeed())
		expectReady(ctx, s)
		handed := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace))
		Expect(string(handed.Data["uri"])).To(ContainSubstring("@paddock-postgres." + s.Namespace + ".svc:5432/paddock?sslmode=verify-full"))

		By("writing nothing while nothing changes")
		before := cluster.GetResourceVersion()
		touch(ctx, s)
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "elm", "replicated-witness")) // reconciled after that
		cluster, err = find(ctx, s.Namespace, provision.ClusterKind)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.GetResourceVersion()).To(Equal(before))

		By("repairing what drifts")
		Expect(unstructured.SetNestedField(cluster.Object, int64(1), "spec", "instances")).To(Succeed())
		Expect(admin.Update(ctx, cluster)).To(Succeed())
		Eventually(func(ctx context.Context) (int64, error) {
			now, err := find(ctx, s.Namespace, provision.ClusterKind)
			instances, _, _ := unstructured.NestedInt64(now.Object, "spec", "instances")
			return instances, err
		}).WithContext(ctx).Should(Equal(int64(3)))

		By("ending the backups when the Site asks for none, but not somebody else's")
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.Storage.Postgres.Provisioned.Backup = nil })
		Eventually(func(ctx context.Context) error {
			_, err := find(ctx, s.Namespace, provision.ScheduledBackupKind)
			return err
		}).WithContext(ctx).Should(MatchError(apierrors.IsNotFound, "a not-found error"))
		theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"schedule": "0 0 3 * * *"}}}
		theirs.SetGroupVersionKind(provision.ScheduledBackupKind)
		theirs.SetNamespace(s.Namespace)
		theirs.SetName(provision.Name)
		Expect(admin.Create(ctx, theirs)).To(Succeed())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Ash" })
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "elm", "unsaved-witness")) // reconciled after that
		_, err = find(ctx, s.Namespace, provision.ScheduledBackupKind)
		Expect(err).NotTo(HaveOccurred())

		By("deleting it with the Site")
		deleteAndWait(ctx, s)
		_, err = find(ctx, s.Namespace, provision.ClusterKind)
		Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		Expect(err).To(HaveOccurred())
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
	})

	It("is the target of a move, and goes when the move is rolled back", func(ctx SpecContext) {
		installCloudNativePG(ctx)
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "moved-replicated")
		expectReady(ctx, s)
		m := createMove(ctx, s, "in", provisionedStorage(v1alpha1.EngineCloudNativePG))
		moveReady(ctx, m).Should(HavePrefix("False Provisioning: CloudNativePG has not processed Cluster"))
		cluster, err := find(ctx, s.Namespace, provision.ClusterKind)
		Expect(err).NotTo(HaveOccurred())
		settings, _, err := unstructured.NestedStringMap(cluster.Object, "spec", "postgresql", "parameters")
		Expect(err).NotTo(HaveOccurred())
		secret := get[corev1.Secret](ctx, s.Namespace, provision.Name)
		serve(ctx, secret, settings)
		authority := &corev1.Secret{Data: map[string][]byte{"ca.crt": secret.Data["ca.crt"]}}
		authority.Namespace, authority.Name = s.Namespace, provision.AuthoritySecret(provision.Name)
		Expect(admin.Create(ctx, authority)).To(Succeed())
		cluster.Object["status"] = map[string]any{"phase": "Cluster in healthy state", "currentPrimary": provision.Name + "-1", "readyInstances": int64(3)}
		Expect(admin.Status().Update(ctx, cluster)).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		target := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.MoveToName(s.Namespace))
		Expect(string(target.Data["uri"])).To(ContainSubstring("@paddock-postgres." + s.Namespace + ".svc:5432/paddock?sslmode=verify-full"))
		decideMove(ctx, m, v1alpha1.MoveRollBack)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveRolledBack))
		_, err = find(ctx, s.Namespace, provision.ClusterKind)
		Expect(err).To(MatchError(apierrors.IsNotFound, "a not-found error"))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		expectReady(ctx, s)
	})

	It("takes the place of a StatefulSet by a move", func(ctx SpecContext) {
		installCloudNativePG(ctx)
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "replaced", v1alpha1.EngineStatefulSet)
		s.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		Expect(admin.Create(ctx, s)).To(Succeed())
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		serve(ctx, get[corev1.Secret](ctx, s.Namespace, provision.Name), nil)
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)
		m := createMove(ctx, s, "replace", provisionedStorage(v1alpha1.EngineCloudNativePG))
		moveReady(ctx, m).Should(HavePrefix("False Provisioning: CloudNativePG has not processed Cluster paddock-postgres-b"))
		cluster, err := findNamed(ctx, s.Namespace, provision.SecondName, provision.ClusterKind)
		Expect(err).NotTo(HaveOccurred())
		secret := get[corev1.Secret](ctx, s.Namespace, provision.SecondName)
		server := serve(ctx, secret, nil)
		authority := &corev1.Secret{Data: map[string][]byte{"ca.crt": secret.Data["ca.crt"]}}
		authority.Namespace, authority.Name = s.Namespace, provision.AuthoritySecret(provision.SecondName)
		Expect(admin.Create(ctx, authority)).To(Succeed())
		cluster.Object["status"] = map[string]any{"phase": "Cluster in healthy state", "currentPrimary": provision.SecondName + "-1", "readyInstances": int64(3)}
		Expect(admin.Status().Update(ctx, cluster)).To(Succeed())
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCopying))
		execute(ctx, server, "INSERT INTO sites (key, hash_key) VALUES ('"+reload(ctx, s).Status.SiteKey+"', '')") // as the API server that copies does
		copied(ctx, m, v1alpha1.MoveCopying)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCatchingUp))
		copied(ctx, m, v1alpha1.MoveCatchingUp)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveSwitched))
		expectReady(ctx, s)
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(6), "kept until the move is confirmed")
		copied(ctx, m, v1alpha1.MoveSwitched)
		decideMove(ctx, m, v1alpha1.MoveConfirm)
		movePhase(ctx, m).Should(Equal(v1alpha1.MoveCompleted))
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
		published := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace))
		Expect(string(published.Data["uri"])).To(ContainSubstring("@paddock-postgres-b." + s.Namespace + ".svc:5432/paddock"))
		Expect(string(published.Data["uri-replica"])).To(ContainSubstring("@paddock-postgres-b-replicas." + s.Namespace + ".svc:5432/paddock"))

		By("watching it")
		Expect(unstructured.SetNestedField(cluster.Object, int64(1), "spec", "instances")).To(Succeed())
		Expect(admin.Update(ctx, cluster)).To(Succeed())
		Eventually(func(ctx context.Context) (int64, error) {
			now, err := findNamed(ctx, s.Namespace, provision.SecondName, provision.ClusterKind)
			instances, _, _ := unstructured.NestedInt64(now.Object, "spec", "instances")
			return instances, err
		}).WithContext(ctx).Should(Equal(int64(3)))

		By("deleting it with the Site")
		deleteAndWait(ctx, s)
		_, err = findNamed(ctx, s.Namespace, provision.SecondName, provision.ClusterKind)
		Expect(err).To(MatchError(apierrors.IsNotFound, "a not-found error"))
		Expect(databaseNamed(ctx, s.Namespace, provision.SecondName)).To(BeEmpty())
	})

	It("is created by the template of a pool, one after the other", func(ctx SpecContext) {
		installCloudNativePG(ctx)
		createsByTemplate(ctx) // pool_template_suite_test.go
	})
	It("is deleted with a SiteClass only if its template says so", func(ctx SpecContext) {
		installCloudNativePG(ctx)
		deletesByTemplate(ctx)
	})
})

// installCloudNativePG installs the kinds of CloudNativePG that we write, without its operator.
func installCloudNativePG(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--server-side", "-f", "testdata/cloudnativepg.yaml")
	awaitKinds(ctx, provision.ClusterKind, provision.ScheduledBackupKind)
}
