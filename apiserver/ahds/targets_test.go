package ahds_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/webhookstore"
)

var _ = Describe("The webhooks that get an event", func() {
	It("are those that REST wrote a moment ago, and soon those of others", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		objects, err := webhookstore.New(controlPlane, now)
		Expect(err).NotTo(HaveOccurred())
		_, err = objects.Targets(s.id, "user.created")
		Expect(err).To(MatchError(store.ErrUnavailable))
		running, stop := context.WithCancel(context.Background())
		started, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- objects.Run(running, func() { close(started) }) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})
		Eventually(started).WithTimeout(30 * time.Second).Should(BeClosed())
		served, ok := openSites[0].Load(s.id)
		Expect(ok).To(BeTrue())
		site := served.(ahds.DataStore)
		site.WebhookEvents, site.Webhooks = objects.WebhookEvents(s.id), objects.Webhooks(s.id)
		openSites[0].Store(s.id, site)
		targets := func() []string {
			found, err := objects.Targets(s.id, "user.created")
			Expect(err).NotTo(HaveOccurred())
			return found
		}

		event := s.do("POST", eventPath, `{"eventType":"user.created","isEnabled":true}`).created(eventID)
		for range 20 { // the watch must not win over what was written since
			hook := s.do("POST", hookPath, hookBody()).created(hookID)
			Expect(targets()).To(Equal([]string{hook}))
			Expect(s.do("PATCH", hookPath+"/"+hook, `{"isActive":false}`).status).To(Equal(http.StatusOK))
			Expect(targets()).To(BeEmpty())
			Expect(s.do("PATCH", hookPath+"/"+hook, `{"isActive":true}`).status).To(Equal(http.StatusOK))
			Expect(targets()).To(Equal([]string{hook}))
			Expect(s.do("DELETE", hookPath+"/"+hook, "").status).To(Equal(http.StatusNoContent))
			Expect(targets()).To(BeEmpty())
		}
		Consistently(targets).WithTimeout(300 * time.Millisecond).Should(BeEmpty())

		scheme := runtime.NewScheme()
		Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
		others, err := kube.New(controlPlane, kube.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		active := true
		applied := &v1alpha1.Webhook{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.id, Name: "applied"},
			Spec:       v1alpha1.WebhookSpec{EventType: "user.created", URL: "https://example.org/hook", Active: &active},
		}
		Expect(others.Create(ctx, applied)).To(Succeed())
		Eventually(targets).Should(Equal([]string{v1alpha1.ResourceID("webhooks", s.id, "applied")}))
		Expect(s.do("PATCH", eventPath+"/"+event, `{"isEnabled":false}`).status).To(Equal(http.StatusOK))
		Expect(targets()).To(BeEmpty())
		Expect(s.do("PATCH", eventPath+"/"+event, `{"isEnabled":true}`).status).To(Equal(http.StatusOK))
		Expect(others.Delete(ctx, applied)).To(Succeed())
		Eventually(targets).Should(BeEmpty())
	})
})
