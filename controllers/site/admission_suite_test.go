package site_test

import (
	"context"
	"strings"

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

// beForbidden is what an admission policy answers.
func beForbidden(message string) OmegaMatcher {
	return And(MatchError(apierrors.IsForbidden, "an error of status 403"), MatchError(ContainSubstring(message)))
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func label(ctx context.Context, who client.Client, namespace, value string) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.RetainLabel+`":`+value+`}}}`))
	return who.Patch(ctx, namespaceOf(namespace), patch)
}

var _ = Describe("A namespace with data that is to stay", func() {
	marked := func(namespace string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			now := &corev1.Namespace{}
			err := admin.Get(ctx, client.ObjectKey{Name: namespace}, now)
			return now.Labels[v1alpha1.RetainLabel] == "true", err
		}
	}

	It("is not deleted, whoever asks, and with or without its Site", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "guarded")
		expectReady(ctx, s)
		Expect(marked(s.Namespace)(ctx)).To(BeTrue())

		By("an editor of the namespace who tries to take the label away first")
		grantNamespace(ctx, "editor", s.Namespace)
		editor := clientOf("editor")
		Expect(label(ctx, editor, s.Namespace, "null")).To(beForbidden("is the Paddock controller's to set and to take away"))
		Expect(label(ctx, editor, s.Namespace, `"false"`)).To(beForbidden("is the Paddock controller's"))
		Expect(editor.Delete(ctx, namespaceOf(s.Namespace))).To(beForbidden("holds the records of a Site with deletionPolicy Retain"))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"oak"}}}`))
		Expect(editor.Patch(ctx, namespaceOf(s.Namespace), patch)).To(Succeed(), "other labels are theirs")

		By("an administrator")
		Expect(label(ctx, admin, s.Namespace, "null")).To(beForbidden("is the Paddock controller's"))
		Expect(admin.Delete(ctx, namespaceOf(s.Namespace))).To(beForbidden("by deleting the SiteClaim"))

		By("after its Site is gone")
		deleteAndWait(ctx, s)
		witness := createSite(ctx, s.Namespace, "elm", "guarded-witness") // reconciled after the deletion
		expectRefused(ctx, witness, v1alpha1.ReasonNamespaceOccupied)
		Expect(marked(s.Namespace)(ctx)).To(BeTrue())
		Expect(admin.Delete(ctx, namespaceOf(s.Namespace))).To(beForbidden("holds the records"))
		deleteAndWait(ctx, witness)

		By("until the data is given up")
		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "guarded"))).To(Succeed())
		Eventually(marked(s.Namespace)).WithContext(ctx).Should(BeFalse())
		deleteAndWait(ctx, namespaceOf(s.Namespace))
	})

	It("is one as long as the policy says so", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "wavering", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		Expect(marked(s.Namespace)(ctx)).To(BeFalse())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
		Eventually(marked(s.Namespace)).WithContext(ctx).Should(BeTrue())
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		Eventually(marked(s.Namespace)).WithContext(ctx).Should(BeFalse())

		By("and goes with all that is in it otherwise")
		claim := get[v1alpha1.SiteClaim](ctx, "", "wavering")
		createRecord(ctx, s.Namespace, claim.Spec.SiteKey, "patient.1")
		deleteAndWait(ctx, namespaceOf(s.Namespace))
		expectGone(ctx, claim)
		Expect(countRecords(ctx, s.Namespace, claim.Spec.SiteKey)).To(BeZero())
	})

	It("is marked again when somebody got round the policy", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "unmarked")
		expectReady(ctx, s)
		Expect(label(ctx, clientOf(controllerUser), s.Namespace, "null")).To(Succeed())
		Eventually(marked(s.Namespace)).WithContext(ctx).Should(BeTrue())
	})

	It("is the controller's to mark, and nothing else of it", func(ctx SpecContext) {
		namespace, controller := newNamespace(ctx), clientOf(controllerUser)
		update(ctx, "", namespace, func(n *corev1.Namespace) { n.Labels["team"] = "oak" })
		Expect(label(ctx, controller, namespace, `"true"`)).To(Succeed())
		Expect(label(ctx, controller, namespace, "null")).To(Succeed())
		for _, change := range []string{
			`{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}`, `{"labels":{"team":null}}`,
			`{"annotations":{"scheduler.alpha.kubernetes.io/node-selector":"a=b"}}`, `{"finalizers":["example.org/a"]}`,
		} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+change+`}`))
			Expect(controller.Patch(ctx, namespaceOf(namespace), patch)).NotTo(Succeed(), change)
		}
	})
})

var _ = Describe("Records as objects", func() {
	It("are written by nobody but Paddock", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		createRecord(ctx, namespace, "key", "patient.1")
		Expect(admin.Create(ctx, newRecord(namespace, "key", "patient.2"))).To(beForbidden("through the APIs of their site"))
		record := get[recordsv1alpha1.Record](ctx, namespace, "patient.1")
		record.Spec.Body = `{"resourceType":"Patient","gender":"male"}`
		Expect(admin.Update(ctx, record)).To(beForbidden("through the APIs of their site"))
		Expect(admin.Delete(ctx, record)).To(beForbidden("through the APIs of their site"))
		history := get[recordsv1alpha1.RecordHistory](ctx, namespace, "patient.1")
		Expect(admin.DeleteAllOf(ctx, history, client.InNamespace(namespace))).To(beForbidden("through the APIs of their site"))

		By("and go with their namespace")
		deleteAndWait(ctx, namespaceOf(namespace))
	})
})

var _ = Describe("The definitions of our kinds", func() {
	It("stay while there are records", func(ctx SpecContext) {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		remove := func(ctx context.Context, name string) error {
			definition.SetName(name)
			return admin.Delete(ctx, definition, client.DryRunAll)
		}
		claim := &v1alpha1.SiteClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "stands-for-records"},
			Spec:       v1alpha1.SiteClaimSpec{SiteRef: v1alpha1.SiteReference{Namespace: "a", Name: "b", UID: "c"}, SiteKey: "key"},
		}
		Expect(admin.Create(ctx, claim)).To(Succeed())
		for _, name := range []string{"sites.paddock.health", "siteclaims.paddock.health", "records.records.paddock.health"} {
			Eventually(remove).WithContext(ctx).WithArguments(name).Should(beForbidden("stands for records that would go with " + name))
		}

		By("and go when there are none")
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.SiteClaim{})).To(Succeed())
		Eventually(remove).WithContext(ctx).WithArguments("sites.paddock.health").Should(Succeed())
	})
})

// grantNamespace lets a user do what it wants with a namespace and in it.
func grantNamespace(ctx context.Context, user, namespace string) {
	GinkgoHelper()
	name := strings.Join([]string{user, namespace}, "-")
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{namespace}, Verbs: []string{"*"},
	}}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	awaitRight(ctx, user, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "delete", Resource: "namespaces", Name: namespace})
}
