package site_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// newTemplateClass creates a SiteClass whose pool has only a template, and deletes it with its databases after
// the spec.
func newTemplateClass(ctx context.Context, name string, template v1alpha1.PoolTemplate) *v1alpha1.SiteClass {
	GinkgoHelper()
	size := resource.MustParse("1Gi")
	template.CloudNativePG = &v1alpha1.PoolCluster{Version: "17", Storage: v1alpha1.Volume{Size: &size}}
	class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{Template: &template}}}
	Expect(admin.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { // after the controllers have stopped
		for _, list := range []client.ObjectList{clusterList(), &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}} {
			Expect(admin.List(ctx, list, client.InNamespace(operatorNamespace), client.MatchingLabels{v1alpha1.SiteClassLabel: name})).To(Succeed())
			objects, err := meta.ExtractList(list)
			Expect(err).NotTo(HaveOccurred())
			for _, object := range objects {
				Expect(admin.Delete(ctx, object.(client.Object))).To(Succeed())
			}
		}
		forgetSites(ctx)
	})
	return class
}

func clusterList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(provision.ClusterKind.GroupVersion().WithKind("ClusterList"))
	return list
}

// poolClusters returns the Clusters of the template of a SiteClass.
func poolClusters(ctx context.Context, class string) []unstructured.Unstructured {
	GinkgoHelper()
	list := clusterList()
	Expect(admin.List(ctx, list, client.InNamespace(operatorNamespace), client.MatchingLabels{v1alpha1.SiteClassLabel: class})).To(Succeed())
	return list.Items
}

// servePool does what CloudNativePG's operator does for a Cluster of the template of a SiteClass.
func servePool(ctx context.Context, class string, number int) {
	GinkgoHelper()
	name := provision.PoolName(class, number)
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(provision.ClusterKind)
	Eventually(func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, cluster)
	}).WithContext(ctx).Should(Succeed())
	secret := get[corev1.Secret](ctx, operatorNamespace, name)
	serve(ctx, secret, nil)
	authority := &corev1.Secret{Data: map[string][]byte{"ca.crt": secret.Data["ca.crt"]}}
	authority.Namespace, authority.Name = operatorNamespace, provision.AuthoritySecret(name)
	authority.Labels = map[string]string{v1alpha1.SiteClassLabel: class} // inherited
	Expect(admin.Create(ctx, authority)).To(Succeed())
	cluster.Object["status"] = map[string]any{"phase": "Cluster in healthy state", "currentPrimary": name + "-1", "readyInstances": int64(3)}
	Expect(admin.Status().Update(ctx, cluster)).To(Succeed())
}

// rejectClusters makes kube-apiserver reject changes of the spec of Clusters until allow is called.
func rejectClusters(ctx context.Context) (allow func()) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: "reject-clusters"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{"postgresql.cnpg.io"}, APIVersions: []string{"*"}, Resources: []string{"clusters"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "object.spec == oldObject.spec", Message: "clusters are frozen"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	Expect(admin.Create(ctx, policy)).To(Succeed())
	Expect(admin.Create(ctx, binding)).To(Succeed())
	allow = func() {
		for _, object := range []client.Object{binding, policy} {
			Expect(client.IgnoreNotFound(admin.Delete(context.Background(), object))).To(Succeed())
		}
	}
	DeferCleanup(allow)
	Eventually(func(ctx context.Context) error {
		all := clusterList()
		Expect(admin.List(ctx, all, client.InNamespace(operatorNamespace))).To(Succeed())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"instances":9}}`))
		return admin.Patch(ctx, &all.Items[0], patch, client.DryRunAll)
	}).WithContext(ctx).Should(MatchError(ContainSubstring("clusters are frozen")))
	return allow
}

// poolPhases returns the databases in the status of a SiteClass, such as "auto-1 Ready 1/0": its name, phase,
// Sites and free places.
func poolPhases(ctx context.Context, class string) []string {
	var phases []string
	for _, d := range get[v1alpha1.SiteClass](ctx, "", class).Status.Databases {
		phases = append(phases, fmt.Sprintf("%s %s %d/%d", d.Name, d.Phase, d.Sites, d.Free))
	}
	return phases
}

// createOfClass creates Sites of a class concurrently.
func createOfClass(ctx context.Context, class string, siteIDs ...string) []*v1alpha1.Site {
	GinkgoHelper()
	sites := make([]*v1alpha1.Site, len(siteIDs))
	var created sync.WaitGroup
	for i, siteID := range siteIDs {
		sites[i] = newSite(newNamespace(ctx), "oak", siteID, v1alpha1.DeletionDelete)
		sites[i].Spec.ClassName = &class
		created.Go(func() {
			defer GinkgoRecover()
			Expect(admin.Create(ctx, sites[i])).To(Succeed())
		})
	}
	created.Wait()
	return sites
}

// storageStates returns how many Sites have each state of their storage, with the name of the database.
func storageStates(ctx context.Context, sites []*v1alpha1.Site) map[string]int {
	GinkgoHelper()
	states := map[string]int{}
	for _, s := range sites {
		state, err := condition(s, v1alpha1.ConditionStorageReady)(ctx)
		Expect(err).NotTo(HaveOccurred())
		states[strings.TrimSpace(state+" "+reload(ctx, s).Status.Database)]++
	}
	return states
}

// createsByTemplate shows that databases are created one after the other, through a restart of the
// controller, up to the maximum, and that none has more Sites than its capacity.
func createsByTemplate(ctx context.Context) {
	GinkgoHelper()
	const name = "grown"
	class := newTemplateClass(ctx, name, v1alpha1.PoolTemplate{Capacity: ptr.To[int32](2), MaxDatabases: ptr.To[int32](2)})
	By("using the Secret of a creation that was interrupted")
	interrupted, err := provision.NewSecret(provision.PoolSite(class, 1, operatorNamespace), provision.Options{Namespace: operatorNamespace, ClassName: name}, "")
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Create(ctx, interrupted)).To(Succeed())

	stop := startController(ctx)
	By("creating none before a Site needs it")
	Eventually(func(ctx context.Context) int64 {
		return get[v1alpha1.SiteClass](ctx, "", name).Status.ObservedGeneration
	}).WithContext(ctx).Should(BeEquivalentTo(1))
	Expect(poolClusters(ctx, name)).To(BeEmpty())

	By("creating one for the first Site, through a restart of the controller")
	sites := createOfClass(ctx, name, "grown-1")
	Eventually(poolPhases).WithContext(ctx).WithArguments(name).Should(Equal([]string{"auto-1 Creating 0/0"}))
	storageOf(ctx, sites[0]).Should(And(HavePrefix("False Provisioning"), ContainSubstring("The Site waits for one that is created")))
	versions := func(ctx context.Context) []string {
		var versions []string
		for _, cluster := range poolClusters(ctx, name) {
			versions = append(versions, string(cluster.GetUID())+" "+cluster.GetResourceVersion())
		}
		return versions
	}
	first := versions(ctx)
	Expect(first).To(HaveLen(1))
	stop()
	startController(ctx)
	Consistently(versions).WithContext(ctx).WithTimeout(7 * time.Second).WithPolling(500 * time.Millisecond).Should(Equal(first))
	Expect(get[corev1.Secret](ctx, operatorNamespace, provision.PoolName(name, 1)).UID).To(Equal(interrupted.UID))

	By("placing one of two Sites that race for its last place, and creating another for the other")
	sites = append(sites, createOfClass(ctx, name, "grown-2", "grown-3")...)
	Eventually(poolPhases).WithContext(ctx).WithTimeout(time.Minute).WithArguments(name).Should(Equal([]string{"auto-1 Creating 0/0", "auto-2 Creating 0/0"}))
	servePool(ctx, name, 1)
	Eventually(storageStates).WithContext(ctx).WithTimeout(time.Minute).WithArguments(sites).Should(Equal(map[string]int{"True PostgresStorage auto-1": 2, "False Provisioning": 1}))
	Eventually(poolPhases).WithContext(ctx).WithTimeout(time.Minute).WithArguments(name).Should(Equal([]string{"auto-1 Ready 2/0", "auto-2 Creating 0/0"}))
	servePool(ctx, name, 2)
	Eventually(storageStates).WithContext(ctx).WithTimeout(time.Minute).WithArguments(sites).Should(Equal(map[string]int{"True PostgresStorage auto-1": 2, "True PostgresStorage auto-2": 1}))

	By("saying that the maximum is reached")
	sites = append(sites, createOfClass(ctx, name, "grown-4", "grown-5")...)
	Eventually(storageStates).WithContext(ctx).WithTimeout(time.Minute).WithArguments(sites).Should(Equal(map[string]int{"True PostgresStorage auto-1": 2, "True PostgresStorage auto-2": 2, "False NoCapacity": 1}))
	var last *v1alpha1.Site
	for _, s := range sites {
		if reload(ctx, s).Status.Database == "" {
			last = s
		} else {
			expectReady(ctx, s)
		}
	}
	storageOf(ctx, last).Should(Equal("False NoCapacity: No database in the pool of SiteClass grown has room for another Site, and the maximum of 2 created databases is reached. " +
		"Ask a cluster administrator to raise maxDatabases or capacity of the template, or to add a database."))
	Consistently(func(ctx context.Context) int { return len(poolClusters(ctx, name)) }).WithContext(ctx).WithTimeout(7 * time.Second).Should(Equal(2))

	By("showing no connection to tenants")
	secrets := &corev1.SecretList{}
	for _, s := range sites {
		Expect(admin.List(ctx, secrets, client.InNamespace(s.Namespace))).To(Succeed())
		Expect(secrets.Items).To(BeEmpty())
	}
	placed := reload(ctx, sites[0])
	published := get[corev1.Secret](ctx, connectionsNamespace, v1alpha1.ConnectionName(placed.Namespace))
	Expect(string(published.Data["uri"])).To(MatchRegexp(`@grown-[12]-pool\.` + operatorNamespace + `\.svc:5432/paddock\?sslmode=verify-full`))

	By("following the template")
	update(ctx, "", name, func(class *v1alpha1.SiteClass) {
		template := class.Spec.Storage.Postgres.Pool.Template
		template.Capacity, template.CloudNativePG.Instances = ptr.To[int32](3), ptr.To[int32](1)
	})
	expectReady(ctx, last)
	Eventually(func(g Gomega, ctx context.Context) {
		for _, cluster := range poolClusters(ctx, name) {
			instances, _, _ := unstructured.NestedInt64(cluster.Object, "spec", "instances")
			g.Expect(instances).To(BeEquivalentTo(1))
		}
	}).WithContext(ctx).Should(Succeed())

	By("keeping databases ready whose change is rejected")
	allow := rejectClusters(ctx)
	update(ctx, "", name, func(class *v1alpha1.SiteClass) {
		class.Spec.Storage.Postgres.Pool.Template.CloudNativePG.Instances = ptr.To[int32](2)
	})
	Eventually(func(ctx context.Context) string {
		return get[v1alpha1.SiteClass](ctx, "", name).Status.Databases[0].Message
	}).WithContext(ctx).Should(ContainSubstring("kube-apiserver rejected Cluster"))
	Expect(poolPhases(ctx, name)).To(HaveEach(ContainSubstring("Ready")))
	allow()
	Eventually(func(ctx context.Context) string {
		return get[v1alpha1.SiteClass](ctx, "", name).Status.Databases[0].Message
	}).WithContext(ctx).Should(BeEmpty(), "the change is tried again")

	By("creating no empty database in the place of one that is lost")
	lost := poolClusters(ctx, name)[0]
	Expect(admin.Delete(ctx, &lost)).To(Succeed())
	update(ctx, "", name, func(class *v1alpha1.SiteClass) {
		class.Spec.Storage.Postgres.Pool.Template.MaxDatabases = ptr.To[int32](3)
	})
	Eventually(func(ctx context.Context) string { return strings.Join(poolPhases(ctx, name), ", ") }).WithContext(ctx).Should(ContainSubstring("Unavailable"))
	Consistently(func(ctx context.Context) int { return len(poolClusters(ctx, name)) }).WithContext(ctx).WithTimeout(7 * time.Second).Should(Equal(1))
}

// deletesByTemplate shows when the databases of a template are deleted.
func deletesByTemplate(ctx context.Context) {
	GinkgoHelper()
	startController(ctx)
	for policy, name := range map[v1alpha1.DeletionPolicy]string{"": "kept", v1alpha1.DeletionDelete: "deleted"} {
		class := newTemplateClass(ctx, name, v1alpha1.PoolTemplate{Capacity: ptr.To[int32](5), MaxDatabases: ptr.To[int32](1), DeletionPolicy: policy})
		s := createOfClass(ctx, name, name+"-1")[0]
		servePool(ctx, name, 1)
		Eventually(condition(s, v1alpha1.ConditionReady)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("True Serving"))

		By("keeping the database of a class that Sites use: " + name)
		Expect(admin.Delete(ctx, class)).To(Succeed())
		Consistently(func(ctx context.Context) int { return len(poolClusters(ctx, name)) }).WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(1))
		deleteAndWait(ctx, s)
		Eventually(func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKeyFromObject(class), class)
		}).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(apierrors.IsNotFound, "a not-found error"))

		key := client.ObjectKey{Namespace: operatorNamespace, Name: provision.PoolName(name, 1)}
		objects := len(poolClusters(ctx, name))
		for _, object := range []client.Object{&corev1.Secret{}, &networkingv1.NetworkPolicy{}} {
			if err := admin.Get(ctx, key, object); err == nil {
				objects++
			} else {
				Expect(err).To(MatchError(apierrors.IsNotFound, "a not-found error"))
			}
		}
		Expect(objects).To(Equal(map[v1alpha1.DeletionPolicy]int{"": 3, v1alpha1.DeletionDelete: 0}[policy]), name)
	}
}
