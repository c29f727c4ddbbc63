package site_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/api/v1beta1"
)

var _ = Describe("The versions v1alpha1 and v1beta1", func() {
	// as reads the object in another version.
	as := func(ctx SpecContext, object *unstructured.Unstructured, version schema.GroupVersion) *unstructured.Unstructured {
		GinkgoHelper()
		read := &unstructured.Unstructured{}
		read.SetGroupVersionKind(version.WithKind(object.GetKind()))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), read)).To(Succeed())
		return read
	}
	content := func(object *unstructured.Unstructured) map[string]any {
		copied := object.DeepCopy()
		unstructured.RemoveNestedField(copied.Object, "apiVersion")
		unstructured.RemoveNestedField(copied.Object, "metadata", "managedFields")
		return copied.Object
	}
	DescribeTable("are the same object", func(ctx SpecContext, kind, spec string) {
		for _, versions := range [][2]schema.GroupVersion{{v1alpha1.GroupVersion, v1beta1.GroupVersion}, {v1beta1.GroupVersion, v1alpha1.GroupVersion}} {
			first, second := versions[0], versions[1]
			object := &unstructured.Unstructured{Object: map[string]any{"spec": specFrom(spec)}}
			object.SetGroupVersionKind(first.WithKind(kind))
			object.SetName("versions-" + first.Version)
			if kind != "SiteClass" {
				object.SetNamespace(newNamespace(ctx))
			}
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed()) })
			condition := map[string]any{
				"type": "Ready", "status": "True", "reason": "Serving", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
			}
			Expect(unstructured.SetNestedSlice(object.Object, []any{condition}, "status", "conditions")).To(Succeed())
			Expect(admin.Status().Update(ctx, object)).To(Succeed())

			other := as(ctx, object, second)
			Expect(content(other)).To(Equal(content(object)))
			other.SetLabels(map[string]string{"changed-as": second.Version})
			Expect(admin.Update(ctx, other)).To(Succeed())
			back := as(ctx, object, first)
			Expect(content(back)).To(Equal(content(other)))
			Expect(back.GetLabels()).To(HaveKeyWithValue("changed-as", second.Version))
		}
	},
		Entry("Site", "Site", `{siteID: versions, displayName: Oak, deletionPolicy: Delete, timeZone: Europe/Berlin,
			storage: {type: Postgres, postgres: {external: {secretRef: {name: db, key: dsn}}}},
			limits: {maxBodySize: 4Mi, requestsPerSecond: 500, maxEventsPerRequest: 7}, retention: {tombstones: 24h}, events: {sources: []}}`),
		Entry("SiteClass", "SiteClass", `{limits: {requestsPerSecond: 500}, retention: {versions: 720h}}`),
		Entry("Webhook", "Webhook", `{eventType: appointment.created, active: true, url: "https://receiver.example.org/events"}`),
		Entry("WebhookEvent", "WebhookEvent", `{eventType: appointment.created, enabled: false, description: Bookings}`),
	)

	It("are refused for the same reasons", func(ctx SpecContext) {
		site := siteFrom(newNamespace(ctx), "oak", `{siteID: versions-b}`)
		Expect(admin.Create(ctx, site)).To(Succeed())
		other := as(ctx, site, v1beta1.GroupVersion)
		Expect(unstructured.SetNestedField(other.Object, "versions-c", "spec", "siteID")).To(Succeed())
		err := admin.Update(ctx, other)
		Expect(err).To(MatchError(apierrors.IsInvalid, "an error of status 422"))
		Expect(err).To(MatchError(ContainSubstring("siteID is immutable")))
	})

	It("are stored as v1alpha1, which the release before reads", func(ctx SpecContext) {
		for _, plural := range []string{"sites", "siteclasses", "webhooks", "webhookevents"} {
			definition := &unstructured.Unstructured{}
			definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
			Expect(admin.Get(ctx, client.ObjectKey{Name: plural + ".paddock.health"}, definition)).To(Succeed())
			stored, _, err := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
			Expect(err).NotTo(HaveOccurred())
			Expect(stored).To(Equal([]string{"v1alpha1"}), plural)
		}
	})

	It("of a Site are read by programs of either version", func(ctx SpecContext) {
		created := &v1beta1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "oak"}}
		created.Spec.Storage.Cluster = &v1alpha1.ClusterStorage{}
		Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
		Expect(admin.Create(ctx, created)).To(Succeed())
		read := &v1alpha1.Site{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(created), read)).To(Succeed())
		Expect(read.UID).To(Equal(created.UID))
		Expect(read.Spec).To(Equal(created.Spec))
	})
})
