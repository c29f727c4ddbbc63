package site_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("Deletion", func() {
	It("removes everything with deletionPolicy Delete", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "erased", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		Expect(reload(ctx, s).Finalizers).To(ConsistOf(v1alpha1.SiteFinalizer))
		claim := get[v1alpha1.SiteClaim](ctx, "", "erased")
		for i := range 20 {
			createRecord(ctx, s.Namespace, claim.Spec.SiteKey, fmt.Sprintf("patient.%d", i))
		}
		createRecord(ctx, s.Namespace, "another-key", "patient.foreign")
		held := newRecord(s.Namespace, claim.Spec.SiteKey, "held") // the deletion does not end before the late record
		held.Finalizers = []string{"example.org/backup"}
		Expect(apiServer.Create(ctx, held)).To(Succeed())

		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionReady)).WithContext(ctx).Should(Equal("False Deleting"))
		createRecord(ctx, s.Namespace, claim.Spec.SiteKey, "patient.late") // by an API server that has not heard
		Eventually(countRecords).WithArguments(s.Namespace, claim.Spec.SiteKey).WithContext(ctx).Should(Equal(1))
		held = get[recordsv1alpha1.Record](ctx, held.Namespace, held.Name)
		Expect(held.DeletionTimestamp).NotTo(BeNil())
		Expect(held.DeletionTimestamp.Time).NotTo(BeTemporally("<", reload(ctx, s).DeletionTimestamp.Add(drain)), "API servers have this time to see the deletion")
		held.Finalizers = nil
		Expect(apiServer.Update(ctx, held)).To(Succeed())
		expectGone(ctx, s)
		Expect(countRecords(ctx, s.Namespace, claim.Spec.SiteKey)).To(BeZero())
		Expect(countRecords(ctx, s.Namespace, "another-key")).To(Equal(6), "the records of another key are not the Site's")
		expectGone(ctx, claim)
		expectGone(ctx, &v1alpha1.NamespaceClaim{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	})

	It("removes more records than fit in one request, and waits for those that somebody holds", func(ctx SpecContext) {
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "erased-in-batches", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		key := get[v1alpha1.SiteClaim](ctx, "", "erased-in-batches").Spec.SiteKey
		const n = 520
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				defer GinkgoRecover()
				for i := w; i < n; i += 8 {
					Expect(apiServer.Create(ctx, newRecord(s.Namespace, key, fmt.Sprintf("patient.%d", i)))).To(Succeed())
				}
			})
		}
		writers.Wait()
		held := newRecord(s.Namespace, key, "aaa")
		held.Finalizers = []string{"example.org/backup"}
		Expect(apiServer.Create(ctx, held)).To(Succeed())

		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(countRecords).WithArguments(s.Namespace, key).WithContext(ctx).Should(Equal(1))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "erased-in-batches").Spec.SiteKey).To(Equal(key), "the claim names what is still to go")
		held = get[recordsv1alpha1.Record](ctx, held.Namespace, held.Name)
		held.Finalizers = nil
		Expect(apiServer.Update(ctx, held)).To(Succeed())
		expectGone(ctx, s)
		Expect(countRecords(ctx, s.Namespace, key)).To(BeZero())
	})

	It("leaves everything with deletionPolicy Retain", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "kept")
		expectReady(ctx, s)
		Expect(reload(ctx, s).Finalizers).To(BeEmpty())
		claim := get[v1alpha1.SiteClaim](ctx, "", "kept")
		createRecord(ctx, s.Namespace, claim.Spec.SiteKey, "patient.1")

		deleteAndWait(ctx, s)
		witness := createSite(ctx, s.Namespace, "elm", "kept-witness") // reconciled after the deletion
		expectRefused(ctx, witness, v1alpha1.ReasonNamespaceOccupied)
		Expect(countRecords(ctx, s.Namespace, claim.Spec.SiteKey)).To(Equal(6))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "kept").UID).To(Equal(claim.UID))
	})

	It("removes the NamespaceClaim with its namespace, unless a SiteClaim has data there", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "given-up-by-hand")
		expectReady(ctx, s)
		deleteAndWait(ctx, s)
		Expect(admin.Delete(ctx, get[v1alpha1.SiteClaim](ctx, "", "given-up-by-hand"))).To(Succeed())
		held := createSite(ctx, newNamespace(ctx), "oak", "held-elsewhere")
		expectReady(ctx, held)
		waiter := createSite(ctx, newNamespace(ctx), "elm", "held-elsewhere")
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)

		for _, namespace := range []string{s.Namespace, waiter.Namespace} {
			Eventually(func() error { return admin.Delete(ctx, namespaceOf(namespace)) }).WithContext(ctx).Should(Succeed(), "the label of retained data goes with the SiteClaim")
			expectGone(ctx, &v1alpha1.NamespaceClaim{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		}
		Expect(get[v1alpha1.NamespaceClaim](ctx, "", held.Namespace).HeldBy(held)).To(BeTrue())
	})

	It("follows a changed deletionPolicy", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "undecided")
		finalizers := func(ctx context.Context) []string { return reload(ctx, s).Finalizers }
		expectReady(ctx, s)
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		Eventually(finalizers).WithContext(ctx).Should(ConsistOf(v1alpha1.SiteFinalizer))
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
		Eventually(finalizers).WithContext(ctx).Should(BeEmpty())
	})

	It("keeps the records when the policy becomes Retain in time", func(ctx SpecContext) {
		before := drain
		DeferCleanup(func() { drain = before })
		drain = time.Hour
		startController(ctx)
		s := newSite(newNamespace(ctx), "oak", "rescued", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, s)).To(Succeed())
		expectReady(ctx, s)
		claim := get[v1alpha1.SiteClaim](ctx, "", "rescued")
		createRecord(ctx, s.Namespace, claim.Spec.SiteKey, "patient.1")

		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionReady)).WithContext(ctx).Should(Equal("False Deleting"))
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
		expectGone(ctx, s)
		Expect(countRecords(ctx, s.Namespace, claim.Spec.SiteKey)).To(Equal(6))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "rescued").UID).To(Equal(claim.UID))
	})

	It("removes nothing of another's with a Site that was never accepted", func(ctx SpecContext) {
		startController(ctx)
		holder := createSite(ctx, newNamespace(ctx), "oak", "not-yours")
		expectReady(ctx, holder)
		claim := get[v1alpha1.SiteClaim](ctx, "", "not-yours")
		createRecord(ctx, holder.Namespace, claim.Spec.SiteKey, "patient.1")
		waiter := newSite(newNamespace(ctx), "oak", "not-yours", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, waiter)).To(Succeed())
		expectRefused(ctx, waiter, v1alpha1.ReasonSiteIDTaken)

		deleteAndWait(ctx, waiter)
		expectGone(ctx, &v1alpha1.NamespaceClaim{ObjectMeta: metav1.ObjectMeta{Name: waiter.Namespace}})
		Expect(countRecords(ctx, holder.Namespace, claim.Spec.SiteKey)).To(Equal(6))
		Expect(get[v1alpha1.SiteClaim](ctx, "", "not-yours").HeldBy(holder)).To(BeTrue())
	})
})

var _ = Describe("Foreign records", func() {
	It("keep a Site from being ready until they are gone", func(ctx SpecContext) {
		startController(ctx)
		namespace := newNamespace(ctx)
		createRecord(ctx, namespace, "another-key", "patient.1")
		s := createSite(ctx, namespace, "oak", "haunted")
		Eventually(condition(s, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False ForeignRecords"))
		Expect(condition(s, v1alpha1.ConditionAccepted)(ctx)).To(Equal("True Accepted"))
		Expect(condition(s, v1alpha1.ConditionReady)(ctx)).To(Equal("False ForeignRecords"))
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True ForeignRecords"))

		Expect(apiServer.Delete(ctx, newRecord(namespace, "another-key", "patient.1"))).To(Succeed())
		touch(ctx, s) // instead of the next look, a minute later
		expectReady(ctx, s)
	})

	It("are what a claim that was made anew finds", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "given-up")
		expectReady(ctx, s)
		claim := get[v1alpha1.SiteClaim](ctx, "", "given-up")
		createRecord(ctx, s.Namespace, claim.Spec.SiteKey, "patient.1")
		touch(ctx, s)
		expectReady(ctx, s)

		Expect(admin.Delete(ctx, claim)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionStorageReady)).WithContext(ctx).Should(Equal("False ForeignRecords"))
	})
})

// touch makes the controller look at the Site.
func touch(ctx context.Context, s *v1alpha1.Site) {
	GinkgoHelper()
	update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "touched", "yes") })
}

// createRecord creates a Record and one object of each other kind that holds data.
func createRecord(ctx context.Context, namespace, siteKey, name string) {
	GinkgoHelper()
	about := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, obj := range []client.Object{
		newRecord(namespace, siteKey, name),
		&recordsv1alpha1.RecordHistory{ObjectMeta: about, Spec: recordsv1alpha1.RecordHistorySpec{
			SiteKey: siteKey, Record: name, Lineage: name, Versions: map[string]recordsv1alpha1.SupersededVersion{},
		}},
		&recordsv1alpha1.AuditSegment{ObjectMeta: about, Spec: recordsv1alpha1.AuditSegmentSpec{SiteKey: siteKey, Hour: metav1.Now(), Entries: []byte("x")}},
		&recordsv1alpha1.RecordClaim{ObjectMeta: about, Spec: recordsv1alpha1.RecordClaimSpec{SiteKey: siteKey, Line: name}},
	} {
		Expect(apiServer.Create(ctx, obj)).To(Succeed())
	}
	for _, obj := range []client.Object{
		&recordsv1alpha1.WebhookDelivery{ObjectMeta: about, Spec: recordsv1alpha1.WebhookDeliverySpec{
			SiteKey: siteKey, Status: recordsv1alpha1.DeliveryPending, Accepted: metav1.NowMicro(), Since: metav1.NowMicro(),
		}},
		&recordsv1alpha1.WebhookDeliveryLog{ObjectMeta: about, Spec: recordsv1alpha1.WebhookDeliveryLogSpec{SiteKey: siteKey}},
	} {
		Expect(deliverer.Create(ctx, obj)).To(Succeed())
	}
}

func newRecord(namespace, siteKey, name string) *recordsv1alpha1.Record {
	now := metav1.NowMicro()
	return &recordsv1alpha1.Record{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: recordsv1alpha1.RecordSpec{
			SiteKey: siteKey, Type: "Patient", ID: name, UID: name, Lineage: name, Version: 1,
			Method: "POST", Created: now, Updated: now, Body: `{"resourceType":"Patient"}`,
		},
	}
}

// countRecords counts the objects of all kinds with a site key.
func countRecords(ctx context.Context, namespace, siteKey string) int {
	GinkgoHelper()
	var n int
	for _, list := range []client.ObjectList{
		&recordsv1alpha1.RecordList{}, &recordsv1alpha1.RecordHistoryList{}, &recordsv1alpha1.RecordClaimList{}, &recordsv1alpha1.AuditSegmentList{},
		&recordsv1alpha1.WebhookDeliveryList{}, &recordsv1alpha1.WebhookDeliveryLogList{},
	} {
		Expect(admin.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"spec.siteKey": siteKey})).To(Succeed())
		n += meta.LenList(list)
	}
	return n
}
