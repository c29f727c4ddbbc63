package site_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("Status", func() {
	It("speaks of the newest generation, as kstatus wants", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "observed")
		expectReady(ctx, s)
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak Street Animal Hospital" })
		Eventually(func(ctx context.Context) int64 { return reload(ctx, s).Status.ObservedGeneration }).
			WithContext(ctx).Should(BeEquivalentTo(2))
		s = reload(ctx, s)
		Expect(s.Generation).To(BeEquivalentTo(2))
		Expect(s.Status.Conditions).To(HaveLen(5))
		for _, c := range s.Status.Conditions {
			Expect(c.ObservedGeneration).To(BeEquivalentTo(2), c.Type)
		}
		Expect(meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeTrue())
		Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		kubectl(ctx, "wait", "--for=condition=Ready", "--namespace", s.Namespace, "site/oak", "--timeout=30s")
	})

	It("is repaired, and leaves the API servers' conditions alone", func(ctx SpecContext) {
		startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "drifting")
		expectReady(ctx, s)
		want := reload(ctx, s).Status

		spoilt := reload(ctx, s)
		spoilt.Status.URL = "https://elsewhere.example.org"
		meta.RemoveStatusCondition(&spoilt.Status.Conditions, v1alpha1.ConditionAccepted)
		meta.SetStatusCondition(&spoilt.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Tampered",
		})
		meta.SetStatusCondition(&spoilt.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionStorageNearLimit, Status: metav1.ConditionTrue, Reason: "Records", Message: "90 %",
		})
		Expect(admin.Status().Update(ctx, spoilt)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			got := reload(ctx, s).Status
			g.Expect(got.URL).To(Equal(want.URL))
			for _, c := range want.Conditions {
				is := meta.FindStatusCondition(got.Conditions, c.Type)
				g.Expect(is).NotTo(BeNil(), c.Type)
				g.Expect(*is).To(HaveField("Status", c.Status))
				g.Expect(*is).To(HaveField("Message", c.Message))
			}
			near := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStorageNearLimit)
			g.Expect(near).NotTo(BeNil())
			g.Expect(near.Message).To(Equal("90 %"))
		}).WithContext(ctx).Should(Succeed())
		touch(ctx, s)
		Expect(reload(ctx, s).Generation).To(BeEquivalentTo(1), "a default changes when a client writes it back")
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak" })
		Eventually(func(g Gomega, ctx context.Context) {
			got := reload(ctx, s)
			g.Expect(got.Status.ObservedGeneration).To(And(Equal(got.Generation), BeNumerically(">", 1)))
		}).WithContext(ctx).Should(Succeed())
		Expect(meta.FindStatusCondition(reload(ctx, s).Status.Conditions, v1alpha1.ConditionStorageNearLimit)).NotTo(BeNil())
	})

	It("is not written while the Site is paused", func(ctx SpecContext) {
		startController(ctx)
		paused := newSite(newNamespace(ctx), "oak", "paused", v1alpha1.DeletionDelete)
		paused.Annotations = map[string]string{v1alpha1.PausedAnnotation: ""}
		Expect(admin.Create(ctx, paused)).To(Succeed())
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "elm", "not-paused")) // reconciled after the other
		got := reload(ctx, paused)
		Expect(got.Status).To(Equal(v1alpha1.SiteStatus{}))
		Expect(got.Finalizers).To(BeEmpty())

		update(ctx, paused.Namespace, paused.Name, func(s *v1alpha1.Site) { s.Annotations = nil })
		expectReady(ctx, paused)
	})

	It("comes with events only when something happened", func(ctx SpecContext) {
		stop := startController(ctx)
		s := createSite(ctx, newNamespace(ctx), "oak", "eventful")
		expectReady(ctx, s)
		update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Oak" })
		Eventually(func(ctx context.Context) int64 { return reload(ctx, s).Status.ObservedGeneration }).
			WithContext(ctx).Should(BeEquivalentTo(2))
		reasons := func(ctx context.Context) ([]string, error) {
			list := &eventsv1.EventList{}
			err := admin.List(ctx, list, client.InNamespace(s.Namespace))
			var reasons []string
			for _, e := range list.Items {
				reasons = append(reasons, e.Regarding.Name+" "+e.Type+" "+e.Reason+" "+e.Action)
			}
			return reasons, err
		}
		first := []any{"oak Normal Claimed Reconcile", "oak Normal Accepted Accepted", "oak Normal ClusterStorage StorageReady", "oak Normal Serving Ready"}
		Eventually(reasons).WithContext(ctx).Should(ConsistOf(first...))
		stop()
		startController(ctx)
		second := createSite(ctx, s.Namespace, "elm", "eventless")
		expectRefused(ctx, second, v1alpha1.ReasonNamespaceOccupied)
		Eventually(reasons).WithContext(ctx).Should(ConsistOf(append(first,
			"elm Warning NamespaceOccupied Accepted", "elm Warning NotAccepted StorageReady",
			"elm Warning NamespaceOccupied Ready", "elm Warning NamespaceOccupied Stalled")...))
	})
})

var _ = Describe("An idle controller", func() {
	It("writes nothing but its lease", func(ctx SpecContext) {
		forgetSites(ctx) // those of an ordered container
		startController(ctx, func(o *ctrl.Options) {
			o.LeaderElection = true
			o.LeaderElectionID = "paddock-controller"
			o.LeaderElectionNamespace = "paddock-system"
			o.LeaderElectionReleaseOnCancel = true
			o.LeaseDuration, o.RenewDeadline = ptr.To(leaseDuration), ptr.To(renewDeadline)
		})
		namespace := newNamespace(ctx)
		expectReady(ctx, createSite(ctx, namespace, "oak", "idle"))
		expectRefused(ctx, createSite(ctx, namespace, "elm", "idle-too"), v1alpha1.ReasonNamespaceOccupied)
		expectRefused(ctx, createSite(ctx, newNamespace(ctx), "oak", "idle"), v1alpha1.ReasonSiteIDTaken)
		expectReady(ctx, createExposed(ctx, "idle-exposed", ingressTo("records.example.com")))
		expectAddress(ctx, createExposed(ctx, "idle-hidden", ingressTo("records.example.net")), "False HostNotAllowed "+publicURL+"/site/idle-hidden")

		// Events are written after the conditions that they are about, so the idle time may begin later.
		ready := time.Now()
		const idle = 20 * time.Second
		writes := func() map[string]int {
			begin := time.Now().Add(-idle)
			if begin.Before(ready) {
				return nil
			}
			return controllerWrites(begin)
		}
		Eventually(writes).WithContext(ctx).WithTimeout(idle + 30*time.Second).WithPolling(time.Second).
			Should(And(HaveLen(1), HaveKeyWithValue("update leases", BeNumerically(">=", 5))))
	})
})

// controllerWrites counts the controller's writes since a time, by verb and resource.
func controllerWrites(since time.Time) map[string]int {
	GinkgoHelper()
	log, err := os.ReadFile(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	log = log[:bytes.LastIndexByte(log, '\n')+1] // kube-apiserver may be writing the last line
	writes := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		Expect(json.Unmarshal(lines.Bytes(), &e)).To(Succeed())
		if e.User.Username != controllerUser || e.RequestReceivedTimestamp.Time.Before(since) || e.ObjectRef == nil {
			continue
		}
		switch e.Verb {
		case "get", "list", "watch":
		default:
			writes[e.Verb+" "+e.ObjectRef.Resource]++
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return writes
}
