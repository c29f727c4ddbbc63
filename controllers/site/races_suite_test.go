package site_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

// rounds of two Sites each that are created in the same instant.
const rounds = 20

var _ = Describe("Two controllers without leader election", func() {
	It("accept one of two Sites created at once in a namespace", func(ctx SpecContext) {
		startController(ctx)
		startController(ctx)
		seen := watchAccepted(ctx, func(s *v1alpha1.Site) string { return s.Namespace })
		var pairs [][2]*v1alpha1.Site
		for i := range rounds {
			namespace := newNamespace(ctx)
			pairs = append(pairs, [2]*v1alpha1.Site{
				newSite(namespace, "oak", fmt.Sprintf("race-oak-%d", i), v1alpha1.DeletionRetain),
				newSite(namespace, "elm", fmt.Sprintf("race-elm-%d", i), v1alpha1.DeletionRetain),
			})
		}
		race(ctx, pairs)
		for _, pair := range pairs {
			expectOneAccepted(ctx, pair, v1alpha1.ReasonNamespaceOccupied)
		}
		claims := &v1alpha1.SiteClaimList{}
		for _, pair := range pairs {
			Expect(admin.List(ctx, claims, client.MatchingFields{"spec.siteRef.namespace": pair[0].Namespace})).To(Succeed())
			Expect(claims.Items).To(HaveLen(1))
		}
		Expect(seen()).To(BeEmpty(), "two Sites of one namespace were accepted at once")
	})

	It("accept one of two Sites created at once with one siteID", func(ctx SpecContext) {
		startController(ctx)
		startController(ctx)
		seen := watchAccepted(ctx, func(s *v1alpha1.Site) string { return s.SiteID() })
		var pairs [][2]*v1alpha1.Site
		for i := range rounds {
			siteID := fmt.Sprintf("race-%d", i)
			pairs = append(pairs, [2]*v1alpha1.Site{
				newSite(newNamespace(ctx), "oak", siteID, v1alpha1.DeletionRetain),
				newSite(newNamespace(ctx), "elm", siteID, v1alpha1.DeletionRetain),
			})
		}
		race(ctx, pairs)
		for _, pair := range pairs {
			expectOneAccepted(ctx, pair, v1alpha1.ReasonSiteIDTaken)
		}
		Expect(seen()).To(BeEmpty(), "two Sites with one siteID were accepted at once")
	})

	It("delete a Site's records together, and give up its claims last", func(ctx SpecContext) {
		startController(ctx)
		startController(ctx)
		const sites, records = 3, 30
		for i := range sites {
			siteID := fmt.Sprintf("race-gone-%d", i)
			s := newSite(newNamespace(ctx), "oak", siteID, v1alpha1.DeletionDelete)
			Expect(admin.Create(ctx, s)).To(Succeed())
			expectReady(ctx, s)
			key := get[v1alpha1.SiteClaim](ctx, "", siteID).Spec.SiteKey
			for n := range records {
				createRecord(ctx, s.Namespace, key, fmt.Sprintf("patient.%d", n))
			}
			held := newRecord(s.Namespace, key, "held")
			held.Finalizers = []string{"example.org/backup"}
			Expect(apiServer.Create(ctx, held)).To(Succeed())

			Expect(admin.Delete(ctx, s)).To(Succeed())
			Eventually(countRecords).WithArguments(s.Namespace, key).WithContext(ctx).Should(Equal(1))
			heir := newSite(newNamespace(ctx), "elm", siteID, v1alpha1.DeletionRetain)
			Expect(admin.Create(ctx, heir)).To(Succeed())
			expectRefused(ctx, heir, v1alpha1.ReasonSiteIDTaken)
			Expect(get[v1alpha1.SiteClaim](ctx, "", siteID).Spec.SiteKey).To(Equal(key), "the claim while a record is left")

			held = get[recordsv1alpha1.Record](ctx, held.Namespace, held.Name)
			held.Finalizers = nil
			Expect(apiServer.Update(ctx, held)).To(Succeed())
			expectGone(ctx, s)
			Expect(countRecords(ctx, s.Namespace, key)).To(BeZero())
			expectReady(ctx, heir)
			Expect(get[v1alpha1.SiteClaim](ctx, "", siteID).Spec.SiteKey).NotTo(Equal(key), "a new Site must not find former records")
		}
	})
})

// race creates the Sites of each pair at the same time, one pair after the other.
func race(ctx context.Context, pairs [][2]*v1alpha1.Site) {
	GinkgoHelper()
	for _, pair := range pairs {
		var together sync.WaitGroup
		errs := make([]error, len(pair))
		for i, s := range pair {
			together.Go(func() { errs[i] = admin.Create(ctx, s) })
		}
		together.Wait()
		Expect(errs).To(HaveEach(Succeed()))
	}
}

func expectOneAccepted(ctx context.Context, pair [2]*v1alpha1.Site, reason string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) ([]string, error) {
		first, err := condition(pair[0], v1alpha1.ConditionAccepted)(ctx)
		if err != nil {
			return nil, err
		}
		second, err := condition(pair[1], v1alpha1.ConditionAccepted)(ctx)
		return []string{first, second}, err
	}).WithContext(ctx).Should(ConsistOf("True Accepted", "False "+reason))
}

// watchAccepted follows every Site from now on. The function it returns ends
// that and lists the groups in which two Sites were accepted at one time.
func watchAccepted(ctx context.Context, group func(*v1alpha1.Site) string) func() []string {
	GinkgoHelper()
	sites := &v1alpha1.SiteList{}
	Expect(admin.List(ctx, sites)).To(Succeed())
	w, err := admin.Watch(ctx, &v1alpha1.SiteList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: sites.ResourceVersion}})
	Expect(err).NotTo(HaveOccurred())
	var double []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		accepted := map[string]map[client.ObjectKey]bool{}
		for e := range w.ResultChan() {
			s, ok := e.Object.(*v1alpha1.Site)
			if !ok {
				continue
			}
			g := group(s)
			if accepted[g] == nil {
				accepted[g] = map[client.ObjectKey]bool{}
			}
			if e.Type != watch.Deleted && meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAccepted) {
				accepted[g][client.ObjectKeyFromObject(s)] = true
			} else {
				delete(accepted[g], client.ObjectKeyFromObject(s))
			}
			if len(accepted[g]) > 1 {
				double = append(double, g)
			}
		}
	}()
	return func() []string {
		w.Stop()
		<-done
		return double
	}
}
