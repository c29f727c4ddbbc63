package site_test

import (
	"context"
	"encoding/binary"
	"maps"
	"net"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

// tenantRules are all that the tenant may do, in one namespace.
var tenantRules = []rbacv1.PolicyRule{{
	APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"sites", "webhooks"},
	Verbs: []string{"get", "create", "update", "patch", "delete"},
}}

// newTenant is a client with tenantRules in a namespace.
func newTenant(ctx context.Context, namespace string) client.Client {
	GinkgoHelper()
	user := "tenant-of-" + namespace
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}
	Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: tenantRules})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	awaitRight(ctx, user, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "sites"})
	return clientOf(user)
}

// rawSite is a Site with a spec that its Go type may not have. Its siteID is its namespace.
func rawSite(namespace string, spec map[string]any) *unstructured.Unstructured {
	spec = maps.Clone(spec)
	spec["siteID"] = namespace
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Site",
		"metadata": map[string]any{"namespace": namespace, "name": "oak"},
		"spec":     spec,
	}}
}

// The siteID of another, and data retained in another namespace, are in claims_suite_test.go;
// addresses of databases, and Secrets of other types, in postgres_suite_test.go and in package
// egress; requests to sites in hack/test/acceptance.
var _ = Describe("A tenant who may create and update Sites", func() {
	var (
		victim    *v1alpha1.Site
		victimKey string
		namespace string
		tenant    client.Client
	)

	BeforeEach(func(ctx SpecContext) {
		startController(ctx)
		home := newNamespace(ctx)
		victim = createSite(ctx, home, "oak", home)
		expectReady(ctx, victim)
		victimKey = get[v1alpha1.SiteClaim](ctx, "", home).Spec.SiteKey
		createRecord(ctx, victim.Namespace, victimKey, "patient.1")
		namespace = newNamespace(ctx)
		tenant = newTenant(ctx, namespace)
	})

	// createOwn makes the tenant's Site, and returns when it is Ready.
	createOwn := func(ctx context.Context, change func(*v1alpha1.Site)) *v1alpha1.Site {
		GinkgoHelper()
		own := newSite(namespace, "oak", namespace, v1alpha1.DeletionDelete)
		change(own)
		Expect(tenant.Create(ctx, own)).To(Succeed())
		expectReady(ctx, own)
		return own
	}

	It("sees nothing beside them", func(ctx SpecContext) {
		for _, list := range []client.ObjectList{
			&v1alpha1.SiteList{}, &v1alpha1.SiteClaimList{}, &v1alpha1.NamespaceClaimList{}, &recordsv1alpha1.RecordList{}, &corev1.SecretList{},
		} {
			Expect(tenant.List(ctx, list)).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
			Expect(tenant.List(ctx, list, client.InNamespace(victim.Namespace))).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
		}
		Expect(tenant.Create(ctx, newSite(victim.Namespace, "elm", "elm", v1alpha1.DeletionRetain))).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
	})

	It("cannot say that its data is another's", func(ctx SpecContext) {
		forged := v1alpha1.SiteStatus{SiteID: victim.Spec.SiteID, SiteKey: victimKey, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.Now(),
		}}}
		own := createOwn(ctx, func(s *v1alpha1.Site) { s.Status = forged })
		key := get[v1alpha1.SiteClaim](ctx, "", namespace).Spec.SiteKey
		Expect(key).NotTo(Equal(victimKey))
		own = reload(ctx, own)
		Expect(own.Status.SiteKey).To(Equal(key))
		own.Status = forged
		Expect(tenant.Update(ctx, own)).To(Succeed())
		Expect(reload(ctx, own).Status.SiteKey).To(Equal(key), "an update of a Site leaves its status alone")
		Expect(tenant.Status().Update(ctx, own)).To(MatchError(apierrors.IsForbidden, "an error of status 403"))
	})

	It("deletes nothing of another's by our labels, annotations and finalizer", func(ctx SpecContext) {
		own := createOwn(ctx, func(s *v1alpha1.Site) {
			s.Labels = map[string]string{v1alpha1.SiteKeyLabel: victimKey, v1alpha1.RetainLabel: "true"}
			s.Annotations = map[string]string{v1alpha1.SiteAnnotation: victim.Namespace + "/" + victim.Name}
			s.Finalizers = []string{v1alpha1.SiteFinalizer}
		})
		Expect(tenant.Delete(ctx, own)).To(Succeed())
		expectGone(ctx, own)
		Expect(get[v1alpha1.SiteClaim](ctx, "", victim.Spec.SiteID).Spec.SiteKey).To(Equal(victimKey))
		Expect(get[recordsv1alpha1.Record](ctx, victim.Namespace, "patient.1").Spec.SiteKey).To(Equal(victimKey))
		Expect(condition(victim, v1alpha1.ConditionReady)(ctx)).To(Equal("True Serving"))
	})

	It("names no siteID of another by an update", func(ctx SpecContext) {
		own := createOwn(ctx, func(*v1alpha1.Site) {})
		for _, change := range []string{`{"spec":{"siteID":"` + victim.Spec.SiteID + `"}}`, `{"spec":{"siteID":null}}`, `{"spec":null}`} {
			Expect(tenant.Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(change)))).
				To(MatchError(ContainSubstring("siteID is immutable")), change)
		}
		Expect(get[v1alpha1.SiteClaim](ctx, "", victim.Spec.SiteID).HeldBy(reload(ctx, victim))).To(BeTrue())
	})

	DescribeTable("cannot ask for what is not a tenant's to give", func(ctx SpecContext, path string, spec map[string]any) {
		s := rawSite(namespace, spec)
		Expect(tenant.Create(ctx, s.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))).
			To(MatchError(ContainSubstring(`unknown field "` + path + `"`)))
		Expect(tenant.Create(ctx, s)).To(Succeed())
		expectReady(ctx, get[v1alpha1.Site](ctx, namespace, "oak"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		_, stored, err := unstructured.NestedFieldNoCopy(s.Object, strings.Split(path, ".")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored).To(BeFalse())
	},
		Entry("groups of callers", "spec.access.groups", map[string]any{"access": map[string]any{"groups": []any{"system:masters"}}}),
		Entry("roles of callers", "spec.access.kubernetes.roles", map[string]any{"access": map[string]any{"kubernetes": map[string]any{"roles": []any{"cluster-admin"}}}}),
		Entry("the class of an Ingress", "spec.exposure.ingress.className", exposedWith("className", "private")),
		Entry("annotations of an Ingress", "spec.exposure.ingress.annotations", exposedWith("annotations", map[string]any{"example.org/snippet": "all"})),
		Entry("the certificate of an Ingress", "spec.exposure.ingress.tls", exposedWith("tls", map[string]any{"secretName": "paddock-apiserver-tls"})),
		Entry("the path of an Ingress", "spec.exposure.ingress.path", exposedWith("path", "/")),
		Entry("the site's key", "spec.siteKey", map[string]any{"siteKey": "victim"}),
	)

	DescribeTable("names no Secret of another namespace", func(ctx SpecContext, name func() string) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: victim.Namespace, Name: "db"}, Type: v1alpha1.SecretTypeDSN,
			StringData: map[string]string{v1alpha1.DSNKey: "postgres://oak:victims-password@127.0.0.1/oak"},
		}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		s := rawSite(namespace, map[string]any{"storage": map[string]any{"type": "Postgres", "postgres": map[string]any{
			"external": map[string]any{"secretRef": map[string]any{"name": name(), "namespace": victim.Namespace}},
		}}})
		Expect(tenant.Create(ctx, s)).To(Succeed())
		own := get[v1alpha1.Site](ctx, namespace, "oak")
		Eventually(condition(own, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False SecretNotFound"))
		published := client.ObjectKey{Namespace: connectionsNamespace, Name: v1alpha1.ConnectionName(namespace)}
		Expect(admin.Get(ctx, published, &corev1.Secret{})).To(MatchError(apierrors.IsNotFound, "a not-found error"))
	},
		Entry("by a field for namespaces", func() string { return "db" }),
		Entry("by a path", func() string { return victim.Namespace + "/db" }),
		Entry("by a path upwards", func() string { return "../" + victim.Namespace + "/db" }),
		Entry("by what the API servers were handed", func() string { return connectionsNamespace + "/" + v1alpha1.ConnectionName(victim.Namespace) }),
	)

	It("does not fill the controller's memory with what its database sends", func(ctx SpecContext) {
		address, sent := serveFlood()
		uri := "postgres://oak:secret@" + address + "/oak?sslmode=disable"
		Expect(admin.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, Type: v1alpha1.SecretTypeDSN,
			StringData: map[string]string{v1alpha1.DSNKey: uri},
		})).To(Succeed())
		s := rawSite(namespace, map[string]any{"storage": map[string]any{
			"type": "Postgres", "postgres": map[string]any{"external": map[string]any{"secretRef": map[string]any{"name": "db"}}},
		}})
		Expect(tenant.Create(ctx, s)).To(Succeed())
		own := get[v1alpha1.Site](ctx, namespace, "oak")
		Eventually(condition(own, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False DatabaseUnreachable"))
		Expect(sent.Load()).To(And(BeNumerically(">", 0), BeNumerically("<", 16<<20)), "bytes that were taken")
	})
})

// serveFlood is a server that takes every password, and then begins an answer of nearly 1 GiB.
// What it sent, the system's buffers included, it counts.
func serveFlood() (address string, sent *atomic.Int64) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	sent = new(atomic.Int64)
	flood := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		backend := pgproto3.NewBackend(conn, conn)
		if _, err := backend.ReceiveStartupMessage(); err != nil {
			return
		}
		backend.Send(&pgproto3.AuthenticationOk{})
		if err := backend.Flush(); err != nil {
			return
		}
		message := make([]byte, 1<<16)
		message[0] = 'S'
		binary.BigEndian.PutUint32(message[1:], 1<<30-16)
		for {
			n, err := conn.Write(message)
			sent.Add(int64(n))
			if err != nil {
				return
			}
			clear(message)
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go flood(conn)
		}
	}()
	return listener.Addr().String(), sent
}

// exposedWith is a spec with a host that is allowed and one thing more.
func exposedWith(field string, value any) map[string]any {
	return map[string]any{"exposure": map[string]any{"ingress": map[string]any{"host": "records.example.com", field: value}}}
}
