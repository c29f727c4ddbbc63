package site_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// There is no node here: what a kubelet would say of a Pod, and the scheduler, the specs
// say. The database is a server of this machine with the password and the certificate that
// the controller made for the Pod.
var _ = Describe("A provisioned database", func() {
	It("is made, watched, kept and adopted", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "made", v1alpha1.EngineStatefulSet)
		// The Pod has to be one that a careful namespace takes.
		kubectl(ctx, "label", "namespace", s.Namespace, "pod-security.kubernetes.io/enforce=restricted")
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix("False Provisioning"))
		Eventually(func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: provision.PodName(provision.Name)}, &corev1.Pod{})
		}).WithContext(ctx).Should(Succeed(), "the StatefulSet's Pod was admitted")
		Expect(condition(s, v1alpha1.ConditionReconciling)(ctx)).To(Equal("True Provisioning"))
		for _, object := range databaseOf(ctx, s.Namespace) {
			Expect(object.GetOwnerReferences()).To(BeEmpty())
			Expect(object.GetLabels()).To(HaveKeyWithValue(v1alpha1.SiteKeyLabel, get[v1alpha1.SiteClaim](ctx, "", "made").Spec.SiteKey))
		}

		By("saying why its Pod does not run")
		setPod(ctx, s.Namespace, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: insufficient memory."},
		}})
		storageOf(ctx, s).Should(Equal("False PodPending: Pod paddock-postgres-0 cannot be scheduled: 0/1 nodes are available: insufficient memory."))
		setPod(ctx, s.Namespace, waiting("ImagePullBackOff"))
		storageOf(ctx, s).Should(HavePrefix("False Unavailable: Pod paddock-postgres-0 does not run: ImagePullBackOff"))

		By("connecting to it, with the certificate verified, once it is ready")
		secret := get[corev1.Secret](ctx, s.Namespace, provision.Name)
		server := serve(ctx, secret, settingsOf(get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name)))
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)
		Expect(condition(s, v1alpha1.ConditionSchemaReady)(ctx)).To(Equal("True Migrated"))
		handed := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(s.Namespace))
		uri := fmt.Sprintf("postgres://paddock:%s@paddock-postgres.%s.svc:5432/paddock?sslmode=verify-full", secret.Data["password"], s.Namespace)
		Expect(string(handed.Data["uri"])).To(Equal(uri))
		Expect(handed.Data["ca.crt"]).To(Equal(secret.Data["ca.crt"]))

		By("writing nothing while nothing changes")
		before := versions(databaseOf(ctx, s.Namespace))
		begin := time.Now()
		touch(ctx, s)
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "elm", "made-witness")) // reconciled after that
		Expect(versions(databaseOf(ctx, s.Namespace))).To(Equal(before))
		for write := range controllerWrites(begin) {
			Expect(write).To(BeElementOf("create events", "patch namespaces", "create siteclaims", "create namespaceclaims", "patch sites"))
		}

		By("repairing what drifts")
		update(ctx, s.Namespace, provision.Name, func(set *appsv1.StatefulSet) { set.Spec.Replicas = ptr.To(int32(0)) })
		update(ctx, s.Namespace, provision.Name, func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "other"} })
		update(ctx, s.Namespace, provision.Name, func(policy *networkingv1.NetworkPolicy) {
			policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		})
		Expect(admin.Delete(ctx, get[policyv1.PodDisruptionBudget](ctx, s.Namespace, provision.Name))).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(get[corev1.Service](ctx, s.Namespace, provision.Name).Spec.Selector).To(HaveKeyWithValue("app.kubernetes.io/name", "postgres"))
			g.Expect(get[networkingv1.NetworkPolicy](ctx, s.Namespace, provision.Name).Spec.Ingress).To(HaveLen(1))
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: provision.Name}, &policyv1.PodDisruptionBudget{})).To(Succeed())
		}).WithContext(ctx).Should(Succeed())

		By("taking back what the Site no longer asks for")
		limit := func(ctx context.Context) string {
			return get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name).Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String()
		}
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) {
			s.Spec.Storage.Postgres.Provisioned.Resources.Limits.CPU = ptr.To(resource.MustParse("2"))
		})
		Eventually(limit).WithContext(ctx).Should(Equal("2"))
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.Storage.Postgres.Provisioned.Resources.Limits.CPU = nil })
		Eventually(limit).WithContext(ctx).Should(Equal("0"))

		By("rolling a minor version out")
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.Storage.Postgres.Provisioned.Version = "17.6" })
		Eventually(func(g Gomega, ctx context.Context) {
			pod := &corev1.Pod{} // the next one: the one before has no node to end it, and is gone at once
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: provision.PodName(provision.Name)}, pod)).To(Succeed())
			g.Expect(pod.Spec.Containers[0].Image).To(Equal("docker.io/library/postgres:17.6"))
		}).WithContext(ctx).Should(Succeed())

		By("saying that the volume cannot grow")
		setPod(ctx, s.Namespace, podReady)
		expectReady(ctx, s)
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) {
			s.Spec.Storage.Postgres.Provisioned.Storage.Size = ptr.To(resource.MustParse("20Gi"))
		})
		storageOf(ctx, s).Should(ContainSubstring("False Refused: kube-apiserver rejected PersistentVolumeClaim paddock-postgres"))
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True Refused"))

		By("keeping it, and its namespace, when the Site is deleted")
		volume := get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.Name)
		execute(ctx, server, fmt.Sprintf("INSERT INTO sites (key, hash_key) VALUES ('%s', '')", volume.Labels[v1alpha1.SiteKeyLabel]))
		deleteAndWait(ctx, s)
		expectGone(ctx, handed)
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(6))
		Expect(admin.Delete(ctx, namespaceOf(s.Namespace))).To(beForbidden("deletionPolicy Retain"))

		By("refusing a Site that asks for another version or engine")
		wrong := newProvisionedSite(s.Namespace, "made", v1alpha1.EngineStatefulSet)
		wrong.Spec.Storage.Postgres.Provisioned.Version = "18"
		Expect(admin.Create(ctx, wrong)).To(Succeed())
		storageOf(ctx, wrong).Should(HavePrefix("False MajorUpgrade: The data was written by Postgres 17"))
		Expect(condition(wrong, v1alpha1.ConditionStalled)(ctx)).To(Equal("True MajorUpgrade"))
		deleteAndWait(ctx, wrong)
		wrong = newProvisionedSite(s.Namespace, "made", v1alpha1.EngineCloudNativePG)
		Expect(admin.Create(ctx, wrong)).To(Succeed())
		storageOf(ctx, wrong).Should(HavePrefix("False ForeignRecords"))
		deleteAndWait(ctx, wrong)

		By("adopting it with a Site of the same name")
		again := newProvisionedSite(s.Namespace, "made", v1alpha1.EngineStatefulSet)
		again.Spec.Storage.Postgres.Provisioned.Version = "17.6" // that of the running Pod, which is not replaced
		Expect(admin.Create(ctx, again)).To(Succeed())
		expectReady(ctx, again)
		Expect(get[corev1.PersistentVolumeClaim](ctx, s.Namespace, provision.Name).UID).To(Equal(volume.UID))
		Expect(get[corev1.Secret](ctx, s.Namespace, provision.Name).Data).To(Equal(secret.Data))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "made").Spec.SiteKey).To(Equal(volume.Labels[v1alpha1.SiteKeyLabel]))

		By("making its Secret anew with the password that works")
		Expect(admin.Delete(ctx, secret)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			now := &corev1.Secret{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(secret), now)).To(Succeed())
			g.Expect(now.UID).NotTo(Equal(secret.UID))
			g.Expect(now.Data["password"]).To(Equal(secret.Data["password"]))
			pod := get[appsv1.StatefulSet](ctx, s.Namespace, provision.Name).Spec.Template
			g.Expect(pod.Annotations).To(HaveKeyWithValue("paddock.health/certificate", provision.Certificate(now)))
		}).WithContext(ctx).Should(Succeed())
	})

	It("goes with deletionPolicy Delete, though it does not run", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "dead", v1alpha1.EngineStatefulSet)
		s.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix("False Provisioning"))
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		claim := get[v1alpha1.SiteClaim](ctx, "", "dead")
		setPod(ctx, s.Namespace, waiting("CrashLoopBackOff"))
		storageOf(ctx, s).Should(HavePrefix("False Unavailable"))

		Expect(admin.Delete(ctx, s)).To(Succeed())
		expectGone(ctx, s)
		expectGone(ctx, claim)
		Expect(databaseOf(ctx, s.Namespace)).To(BeEmpty())
	})

	It("goes with its namespace and deletionPolicy Delete", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "leaving", v1alpha1.EngineStatefulSet)
		s.Spec.DeletionPolicy = v1alpha1.DeletionDelete
		Expect(admin.Create(ctx, s)).To(Succeed())
		Eventually(databaseOf).WithContext(ctx).WithArguments(s.Namespace).Should(HaveLen(6))
		claim := get[v1alpha1.SiteClaim](ctx, "", "leaving")
		deleteAndWait(ctx, namespaceOf(s.Namespace))
		expectGone(ctx, claim)
	})

	It("is not taken for another that answers in its place", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "impersonated", v1alpha1.EngineStatefulSet)
		options := provision.Options{Namespace: operatorNamespace, SiteKey: "other"}
		other, err := provision.NewSecret(s, options, "")
		Expect(err).NotTo(HaveOccurred())
		serve(ctx, other, nil)
		Expect(admin.Create(ctx, s)).To(Succeed())
		setPod(ctx, s.Namespace, podReady)
		storageOf(ctx, s).Should(HavePrefix("False DatabaseUnreachable: The database cannot be used: its TLS certificate is not trusted"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: connectionsNamespace, Name: v1alpha1.ConnectionName(s.Namespace)}, &corev1.Secret{})).
			To(MatchError(apierrors.IsNotFound, "a not-found error"))
	})

	It("is not made over what others have", func(ctx SpecContext) {
		startController(ctx)
		s := newProvisionedSite(newNamespace(ctx), "squatted", v1alpha1.EngineStatefulSet)
		theirs := &corev1.Secret{StringData: map[string]string{"password": "theirs"}}
		theirs.Namespace, theirs.Name = s.Namespace, provision.Name
		Expect(admin.Create(ctx, theirs)).To(Succeed())
		Expect(admin.Create(ctx, s)).To(Succeed())
		storageOf(ctx, s).Should(HavePrefix(`False InvalidSecret: Secret "paddock-postgres" has the name of the database's Secret but not the type paddock.health/dsn`))
		Expect(databaseOf(ctx, s.Namespace)).To(HaveLen(1), "their Secret")
	})

	It("is the only object of its kind that the controller may write", func(ctx SpecContext) {
		namespace, controller := newNamespace(ctx), clientOf(controllerUser)
		other := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		other.Namespace, other.Name = namespace, "other"
		Expect(controller.Create(ctx, other)).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
		secret := &corev1.Secret{Type: v1alpha1.SecretTypeDSN}
		secret.Namespace, secret.Name = namespace, "other"
		Expect(controller.Create(ctx, secret)).NotTo(Succeed(), "a policy names the one that it may")
		Expect(controller.List(ctx, &corev1.PodList{})).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
	})
})

func newProvisionedSite(namespace, siteID string, engine v1alpha1.PostgresEngine) *v1alpha1.Site {
	s := newSite(namespace, "oak", siteID, v1alpha1.DeletionRetain)
	s.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
		Provisioned: &v1alpha1.ProvisionedPostgres{
			Engine: engine, Version: "17", Storage: v1alpha1.Volume{Size: ptr.To(resource.MustParse("10Gi"))},
		},
	}}
	return s
}

// storageOf tells the condition StorageReady with its message.
func storageOf(ctx context.Context, s *v1alpha1.Site) AsyncAssertion {
	return Eventually(func(ctx context.Context) (string, error) {
		message, err := condition(s, v1alpha1.ConditionStorageReady)(ctx)
		if c := meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionStorageReady); c != nil {
			message += ": " + c.Message
		}
		return message, err
	}).WithContext(ctx)
}

// databaseOf finds the objects of the database of a namespace.
func databaseOf(ctx context.Context, namespace string) []client.Object {
	GinkgoHelper()
	return databaseNamed(ctx, namespace, provision.Name)
}

// databaseNamed finds the objects of the database of a namespace with a name.
func databaseNamed(ctx context.Context, namespace, name string) []client.Object {
	GinkgoHelper()
	var there []client.Object
	for _, object := range []client.Object{
		&corev1.Secret{}, &networkingv1.NetworkPolicy{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}, &policyv1.PodDisruptionBudget{}, &appsv1.StatefulSet{},
	} {
		err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if err == nil {
			there = append(there, object)
		}
		Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	}
	return there
}

// versions tell what was written since; those of a StatefulSet's status do not count.
func versions(objects []client.Object) map[string]string {
	versions := map[string]string{}
	for _, object := range objects {
		version := object.GetResourceVersion()
		if object.GetGeneration() > 0 {
			version = fmt.Sprint("generation ", object.GetGeneration())
		}
		versions[fmt.Sprintf("%T", object)] = version
	}
	return versions
}

var podReady = corev1.PodStatus{
	Phase:             corev1.PodRunning,
	Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
}

func waiting(reason string) corev1.PodStatus {
	return corev1.PodStatus{
		Phase:      corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "postgres", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}},
	}
}

// setPod says what a kubelet would, as soon as there is a Pod to say it of.
func setPod(ctx context.Context, namespace string, status corev1.PodStatus) {
	GinkgoHelper()
	setPodOf(ctx, namespace, provision.Name, status)
}

// setPodOf is setPod for the database with a name.
func setPodOf(ctx context.Context, namespace, name string, status corev1.PodStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		pod := &corev1.Pod{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: provision.PodName(name)}, pod)).To(Succeed())
		g.Expect(pod.DeletionTimestamp.IsZero()).To(BeTrue())
		pod.Status = status
		g.Expect(admin.Status().Update(ctx, pod)).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}

// serve runs a database, with the credentials of a Secret and the settings that Pods are
// given, where Services lead to.
func serve(ctx context.Context, secret *corev1.Secret, settings map[string]string) *localpostgres.Server {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-provisioned")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Secure: true, Settings: settings})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	for path, content := range map[string][]byte{"tls.crt": secret.Data["server.crt"], "tls.key": secret.Data["server.key"]} {
		Expect(os.WriteFile(filepath.Join(dir, path), content, 0o600)).To(Succeed()) // they stay the server's user's
	}
	for _, sql := range []string{
		fmt.Sprintf("CREATE ROLE paddock LOGIN SUPERUSER PASSWORD '%s'", secret.Data["password"]), "CREATE DATABASE paddock OWNER paddock",
		"SELECT pg_reload_conf()",
	} {
		_, err := conn.Exec(ctx, sql)
		Expect(err).NotTo(HaveOccurred())
	}
	address, err := url.Parse(server.URL("paddock"))
	Expect(err).NotTo(HaveOccurred())
	service := serviceAddress
	if secret.Name == provision.SecondName {
		service = secondServiceAddress
	}
	clusterServices.Store(cmp.Or(poolAddress(secret.Name), service), address.Host)
	return server
}

// settingsOf are what the container's command sets, but for paths in it.
func settingsOf(set *appsv1.StatefulSet) map[string]string {
	GinkgoHelper()
	settings := map[string]string{}
	for _, argument := range set.Spec.Template.Spec.Containers[0].Args {
		if name, value, ok := strings.Cut(argument, "="); ok && !strings.HasPrefix(value, "/") {
			settings[name] = value
		}
	}
	Expect(settings).To(HaveKeyWithValue("ssl", "on"))
	return settings
}

func execute(ctx context.Context, server *localpostgres.Server, sql string) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, server.URL("paddock"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	Expect(err).NotTo(HaveOccurred())
}
