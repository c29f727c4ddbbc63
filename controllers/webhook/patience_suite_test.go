package webhook_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/webhook"
)

var _ = Describe("A Webhook whose Secret follows, as the AHDS API creates both", Ordered, func() {
	BeforeAll(func() {
		stopControllers()
		stopControllers = startControllers(secrets.Cluster, func(r *webhook.Reconciler) { r.SecretPatience = time.Hour })
		DeferCleanup(func() {
			stopControllers()
			stopControllers = startControllers(secrets.Cluster)
		})
	})

	It("is not reported as one without a Secret", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.SecretRef = &v1alpha1.WebhookSecretReference{Name: "follows"} })
		Expect(admin.Create(ctx, hook)).To(Succeed())
		later := newHook(namespace)
		later.Name = "later"
		Expect(admin.Create(ctx, later)).To(Succeed())
		expectAccepted(ctx, later, "True Accepted")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(hook), hook)).To(Succeed())
		Expect(hook.Status.Conditions).To(BeEmpty())

		Expect(admin.Create(ctx, newSecret(namespace, "follows", v1alpha1.SecretTypeWebhook, signing.NewShared()))).To(Succeed())
		expectAccepted(ctx, hook, "True Accepted")
		Eventually(func(ctx context.Context) (reasons []string, err error) {
			list := &eventsv1.EventList{}
			err = admin.List(ctx, list, client.InNamespace(namespace))
			for _, event := range list.Items {
				if event.Regarding.Name == hook.Name {
					reasons = append(reasons, event.Type+" "+event.Reason)
				}
			}
			return reasons, err
		}).WithContext(ctx).Should(And(ContainElement("Normal Accepted"), Not(ContainElement(HavePrefix("Warning")))))

		By("one that loses its Secret later is")
		Expect(admin.Delete(ctx, newSecret(namespace, "follows", v1alpha1.SecretTypeWebhook, ""))).To(Succeed())
		expectAccepted(ctx, hook, "False SecretNotFound")
	})
})

var _ = Describe("A Webhook whose events nothing produces", func() {
	It("says so, and so does the WebhookEvent, until the Site has a source", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		site := &v1alpha1.Site{}
		site.Namespace, site.Name = namespace, "harbour"
		site.Spec.SiteID, site.Spec.Storage.Type = namespace, v1alpha1.StorageCluster
		Expect(admin.Create(ctx, site)).To(Succeed())
		hook, event := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.EventType = "appointment.created" }), newEvent(namespace)
		event.Spec.EventType = "appointment.created"
		Expect(admin.Create(ctx, event)).To(Succeed())
		Expect(admin.Create(ctx, hook)).To(Succeed())
		const unproduced = "No change of a record of Site harbour produces appointment.created: add {type: AvailabilitySlot, created: appointment.created} to its spec.events.sources."
		for _, object := range []client.Object{hook, event} {
			expectActive(ctx, object, "True Active")
			Eventually(message(object, v1alpha1.ConditionActive)).WithContext(ctx).Should(ContainSubstring(unproduced))
		}
		Expect(message(event, v1alpha1.ConditionDelivering)(ctx)).To(ContainSubstring(unproduced))

		patch(ctx, site, `{"spec":{"events":{"sources":[{"type":"AvailabilitySlot","created":"appointment.created"}]}}}`)
		for _, object := range []client.Object{hook, event} {
			Eventually(message(object, v1alpha1.ConditionActive)).WithContext(ctx).ShouldNot(ContainSubstring("No change"))
		}
	})
})
